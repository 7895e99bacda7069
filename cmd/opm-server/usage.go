package main

import "errors"

const (
	usage = `Usage:
  opm serve DIR [flags]
  opm registry serve -d DATABASE [flags]
  opm version
This is the server of a catalog image: it has no other commands of opm.`

	usageServe = `Usage:
  opm serve DIR [flags]
Flags:
  -p, --port int                   port number to serve on (default 50051)
  -t, --termination-log string     path to a container termination log file (default "/dev/termination-log")
      --cache-dir string           directory of the serve cache; what is missing in it is built
      --cache-only                 fill the cache and exit
      --cache-enforce-integrity    fail when the cache does not match the catalog, instead of rebuilding it
      --pprof-addr string          address of the profiling endpoint (default none)
      --pprof-capture-profiles     offer a profile of the start there too
` + usageCommon

	usageRegistryServe = `Usage:
  opm registry serve [flags]
Flags:
  -d, --database string            path of the database (default "bundles.db")
  -p, --port int                   port number to serve on (default 50051)
  -t, --termination-log string     path to a container termination log file (default "/dev/termination-log")
      --timeout-seconds string     how long to serve (default "infinite")
      --skip-migrate               accepted; databases are never migrated
` + usageCommon

	usageCommon = `      --reload-every duration      how often to look for changes of the catalog and the TLS files; 0 means never (default 10s)
      --tls-cert string            file of a certificate (PEM): serve with TLS; loaded again when it changes
      --tls-key string             file of its key (PEM)
      --http-addr string           address of pages for people and of catalogd's API (default none)
      --metrics-addr string        address of metrics for Prometheus, under /metrics (default none)
      --max-connections int        how many connections may be open (default 4096, fewer where memory is limited)
      --max-streams int            how many calls each of them may have open (default 100)
      --log-format string          text or json (default "text")
      --debug                      log more
SIGHUP loads the catalog again.`
)

// usageError is a mistake on the command line.
type usageError struct {
	error
	usage string
}

func asUsage(err error) (string, bool) {
	u := usageError{}
	ok := errors.As(err, &u)
	return u.usage, ok
}
