package serve

import "github.com/operator-bindery/bindery/internal/fault"

// Flag is a flag of a program that serves a catalog.
type Flag struct {
	Name, Short string
	// Value is a *string, an *int or a *time.Duration with the default, which Default says in other words.
	Value   any
	Default string
	// Usage has the placeholder of the value in backquotes.
	Usage string
}

// Flags sets defaults, and returns the flags of the options: what [Options.Check] accepts, [Run] serves by.
func (o *Options) Flags() []Flag {
	o.Port, o.TerminationLog, o.ReloadEvery, o.gates = DefaultPort, "/dev/termination-log", DefaultReloadEvery, "metas,graphql"
	o.Limits.Connections, o.Limits.Streams = DefaultConnections, DefaultStreams
	return []Flag{
		{Name: "address", Value: &o.Address,
			Usage: "listen on the interface of `ADDRESS` alone, such as 127.0.0.1 (default all interfaces)"},
		{Name: "port", Short: "p", Value: &o.Port, Usage: "listen on TCP port `N`; 0 selects a free port"},
		{Name: "termination-log", Short: "t", Value: &o.TerminationLog, Usage: "also write a fatal error to `FILE`"},
		{Name: "reload-every", Value: &o.ReloadEvery,
			Usage: "check the directory or database and the TLS files for changes every `INTERVAL`; 0 means never"},
		{Name: "tls-cert", Value: &o.TLSCert,
			Usage: "serve over TLS with the certificate `FILE` (PEM), which is reloaded when it changes"},
		{Name: "tls-key", Value: &o.TLSKey, Usage: "key `FILE` of the certificate (PEM)"},
		{Name: "http-addr", Value: &o.HTTPAddr,
			Usage: "serve the catalog over HTTP at `ADDRESS`: web pages, and the API of OLM v1's catalogd"},
		{Name: "http-name", Value: &o.HTTPName,
			Usage: "answer catalogd's API for the catalog `NAME` alone; other names get 404 (default any name)"},
		{Name: "http-host", Value: &o.hosts,
			Usage: "`NAMES` with commas that requests over loopback may have in their header Host (default addresses and localhost alone)"},
		{Name: "http-gates", Value: &o.gates,
			Usage: "`GATES` of catalogd's API that are on: metas, graphql, both with a comma, or none"},
		{Name: "title", Value: &o.HTTPTitle, Default: DefaultTitle, Usage: "`TEXT` that the web pages call the catalog by"},
		{Name: "metrics-addr", Value: &o.MetricsAddr, Usage: "serve Prometheus metrics over plain HTTP at `ADDRESS`, path /metrics"},
		{Name: "max-connections", Value: &o.Limits.Connections,
			Usage: "accept at most `N` connections (default fewer if memory or open files are limited)"},
		{Name: "max-streams", Value: &o.Limits.Streams, Usage: "accept at most `N` concurrent calls per connection"},
	}
}

// Check refuses invalid values of [Options.Flags], and those without effect: given tells which were given. Its errors name
// flags.
func (o *Options) Check(given func(flag string) bool) error {
	switch {
	case o.Port < 0 || o.Port > 65535:
		return fault.Fieldf("invalid --port value %d, expected 0 to 65535", o.Port)
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return fault.Fieldf("%w", ErrTLSFlags)
	case o.ReloadEvery < 0:
		return fault.Fieldf("invalid --reload-every value %v, expected 0 or more", o.ReloadEvery)
	case o.Limits.Connections < 1:
		return fault.Fieldf("invalid --max-connections value %d, expected 1 or more", o.Limits.Connections)
	case o.Limits.Streams < 1:
		return fault.Fieldf("invalid --max-streams value %d, expected 1 or more", o.Limits.Streams)
	}
	for _, flag := range []string{"http-name", "http-gates", "title"} {
		if given(flag) && o.HTTPAddr == "" {
			return fault.Fieldf("--%s has no effect without --http-addr", flag)
		}
	}
	if given("http-name") {
		if err := o.CheckHTTPName(); err != nil {
			return fault.Fieldf("invalid --http-name value %q: %w", o.HTTPName, err)
		}
	}
	if given("http-host") { // of metrics and profiles too
		if err := o.SetHTTPHosts(o.hosts); err != nil {
			return fault.Fieldf("invalid --http-host value: %w", err)
		}
	}
	if err := o.SetHTTPGates(o.gates); err != nil {
		return fault.Fieldf("invalid --http-gates value: %w", err)
	}
	if !given("max-connections") {
		o.Limits.Connections = 0 // as many as memory and open files allow
	}
	return nil
}
