package serve

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/olmv1/safety"
	"github.com/operator-bindery/bindery/serve"
)

// server has the flags of every command that serves a catalog.
type server struct {
	option.Catalogs
	port, maxConnections, maxStreams                         int
	address, terminationLog, tlsCert, tlsKey                 string
	httpAddr, httpName, httpHosts, httpGates, title, metrics string
	reloadEvery                                              time.Duration
}

func (o *server) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "address", Destination: &o.address,
			Usage: "listen on the interface of `ADDRESS` alone, such as 127.0.0.1 (default all interfaces)"},
		&cli.IntFlag{Name: "port", Aliases: []string{"p"}, Value: serve.DefaultPort, Destination: &o.port,
			Usage: "listen on TCP port `N`; 0 selects a free port"},
		&cli.StringFlag{Name: "termination-log", Aliases: []string{"t"}, Value: "/dev/termination-log",
			Usage: "also write a fatal error to `FILE`", Destination: &o.terminationLog},
		&cli.DurationFlag{Name: "reload-every", Value: serve.DefaultReloadEvery, Destination: &o.reloadEvery,
			Usage: "check the directory or database and the TLS files for changes every `INTERVAL`; 0 means never"},
		&cli.StringFlag{Name: "tls-cert", Destination: &o.tlsCert,
			Usage: "serve over TLS with the certificate `FILE` (PEM), which is reloaded when it changes"},
		&cli.StringFlag{Name: "tls-key", Usage: "key `FILE` of the certificate (PEM)", Destination: &o.tlsKey},
		&cli.StringFlag{Name: "http-addr", Destination: &o.httpAddr,
			Usage: "serve the catalog over HTTP at `ADDRESS`: web pages, and the API of OLM v1's catalogd"},
		&cli.StringFlag{Name: "http-name", Destination: &o.httpName,
			Usage: "answer catalogd's API for the catalog `NAME` alone; other names get 404 (default any name)"},
		&cli.StringFlag{Name: "http-host", Destination: &o.httpHosts,
			Usage: "`NAMES` with commas that requests over loopback may have in their header Host (default addresses and localhost alone)"},
		&cli.StringFlag{Name: "http-gates", Value: "metas,graphql", Destination: &o.httpGates,
			Usage: "`GATES` of catalogd's API that are on: metas, graphql, both with a comma, or none"},
		&cli.StringFlag{Name: "title", DefaultText: serve.DefaultTitle, Destination: &o.title,
			Usage: "`TEXT` that the web pages call the catalog by"},
		&cli.StringFlag{Name: "metrics-addr", Destination: &o.metrics,
			Usage: "serve Prometheus metrics over plain HTTP at `ADDRESS`, path /metrics"},
		&cli.IntFlag{Name: "max-connections", Value: serve.DefaultConnections, Destination: &o.maxConnections,
			Usage: "accept at most `N` connections (default fewer if memory or open files are limited)"},
		&cli.IntFlag{Name: "max-streams", Value: serve.DefaultStreams, Destination: &o.maxStreams,
			Usage: "accept at most `N` concurrent calls per connection"},
		o.CompatFlag(""),
	}
}

// options checks the flags and returns how the catalog is served.
func (o *server) options(p *option.Session) (serve.Options, error) {
	with := serve.Options{
		Address: o.address, Port: o.port, TerminationLog: o.terminationLog, Log: p.Log, Version: version.Release(),
		HTTPAddr: o.httpAddr, MetricsAddr: o.metrics, TLSCert: o.tlsCert, TLSKey: o.tlsKey, ReloadEvery: o.reloadEvery,
		Limits: serve.Limits{Connections: o.maxConnections, Streams: o.maxStreams},
	}
	switch {
	case with.Port < 0 || with.Port > 65535:
		return with, cmdline.Usagef("invalid --port value %d, expected 0 to 65535", with.Port)
	case (with.TLSCert == "") != (with.TLSKey == ""):
		return with, cmdline.Usagef("%v", serve.ErrTLSFlags)
	case with.ReloadEvery < 0:
		return with, cmdline.Usagef("invalid --reload-every value %v, expected 0 or more", with.ReloadEvery)
	case with.Limits.Connections < 1:
		return with, cmdline.Usagef("invalid --max-connections value %d, expected 1 or more", with.Limits.Connections)
	case with.Limits.Streams < 1:
		return with, cmdline.Usagef("invalid --max-streams value %d, expected 1 or more", with.Limits.Streams)
	}
	if err := o.httpOptions(p, &with); err != nil {
		return with, err
	}
	if !p.Given("max-connections") {
		with.Limits.Connections = 0 // as many as memory and open files allow
	}
	// The default is the termination log of a pod; outside of a pod it cannot be written and is not needed.
	if !p.Given("termination-log") && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		with.TerminationLog = ""
	}
	return with, nil
}

// httpOptions reads the flags of --http-addr.
func (o *server) httpOptions(p *option.Session, with *serve.Options) (err error) {
	for _, name := range []string{"http-name", "http-gates", "title"} {
		if p.Given(name) && with.HTTPAddr == "" {
			return cmdline.Usagef("--%s has no effect without --http-addr", name)
		}
	}
	with.HTTPName, with.HTTPTitle, with.Judge = o.httpName, o.title, safety.Refused
	if p.Given("http-name") {
		if err := with.CheckHTTPName(); err != nil {
			return cmdline.Usagef("invalid --http-name value %q: %v", with.HTTPName, err)
		}
	}
	if p.Given("http-host") {
		if err := with.SetHTTPHosts(o.httpHosts); err != nil {
			return cmdline.Usagef("invalid --http-host value: %v", err)
		}
	}
	if err := with.SetHTTPGates(o.httpGates); err != nil {
		return cmdline.Usagef("invalid --http-gates value: %v", err)
	}
	return nil
}

// runServer serves until ctx ends, and reloads the catalog on SIGHUP.
func runServer(p *option.Session, ctx context.Context, src serve.Source, o serve.Options) error {
	o.Limits.FitProcess(o.Log)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hangups, reload := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	o.Reload = reload
	stderr, ok := p.Stderr.(*os.File)
	onTerminal := ok && term.IsTerminal(int(stderr.Fd()))
	go func() {
		for {
			select {
			case s := <-hangups:
				// SIGHUP from a closed terminal, or while a cache is being filled, must end the program and not reload.
				if o.CacheOnly || onTerminal && !term.IsTerminal(int(stderr.Fd())) {
					cancel(cmdline.Signal{Signal: syscall.SIGHUP})
					return
				}
				select {
				case reload <- s:
				default: // one is waiting already
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	err := serve.Run(ctx, src, o)
	// After an interruption the error says only that the context has ended: return the signal.
	if hangup := (cmdline.Signal{}); err != nil && errors.As(context.Cause(ctx), &hangup) {
		return hangup
	}
	return err
}
