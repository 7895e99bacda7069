package main

import "errors"

const (
	usage = `Usage:
  opm serve DIR [flags]
  opm registry serve -d DATABASE [flags]
  opm version
This is the server of a catalog image. It does not have the other commands of opm.`

	usageServe = `Usage:
  opm serve DIR [flags]
Flags:
  -p, --port int                   port number to serve on (default 50051)
  -t, --termination-log string     path to a container termination log file (default "/dev/termination-log")
      --cache-dir string           directory of the serve cache; missing parts are built
      --cache-only                 fill the cache and exit
      --cache-enforce-integrity    fail when the cache does not match the catalog, instead of rebuilding it
      --pprof-addr string          address of the profiling endpoint (default none)
      --pprof-capture-profiles     also serve a profile of the startup there
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

	usageCommon = `      --reload-every duration      interval of checks for changes of the catalog and the TLS files; 0 means never (default 10s)
      --tls-cert string            certificate file (PEM) to serve over TLS; reloaded when it changes
      --tls-key string             key file of the certificate (PEM)
      --http-addr string           address of the web pages and catalogd's API (default none)
      --http-name string           the catalog's only name for catalogd's API (default any name)
      --http-host string           names that requests over loopback may have (default addresses and localhost alone)
      --http-gates string          what is on of catalogd's API: metas, graphql, or none (default "metas,graphql")
      --title string               what the web pages call the catalog (default "Operator catalog")
      --metrics-addr string        address of Prometheus metrics, path /metrics (default none)
      --max-connections int        maximum number of connections (default 4096, fewer if memory or files are limited)
      --max-streams int            maximum number of concurrent calls per connection (default 100)
      --log-format string          text or json (default "text")
      --debug                      log more
SIGHUP reloads the catalog.`
)

// usageError is an error in the command line.
type usageError struct {
	error
	usage string
}

func asUsage(err error) (string, bool) {
	u := usageError{}
	ok := errors.As(err, &u)
	return u.usage, ok
}
