package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/serve"
)

// serverFlags are the flags of every command that serves a catalog.
func serverFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "port", Aliases: []string{"p"}, Value: serve.DefaultPort,
			Usage: "listen on TCP port `N` of all interfaces; 0 selects a free port"},
		&cli.StringFlag{Name: "termination-log", Aliases: []string{"t"}, Value: "/dev/termination-log",
			Usage: "also write a fatal error to `FILE`"},
		&cli.DurationFlag{Name: "reload-every", Value: serve.DefaultReloadEvery,
			Usage: "check the directory or database and the TLS files for changes every `INTERVAL`; 0 means never"},
		&cli.StringFlag{Name: "tls-cert",
			Usage: "serve over TLS with the certificate `FILE` (PEM), which is reloaded when it changes"},
		&cli.StringFlag{Name: "tls-key", Usage: "key `FILE` of the certificate (PEM)"},
		&cli.StringFlag{Name: "http-addr",
			Usage: "serve the catalog over HTTP at `ADDRESS`: web pages, and the API of OLM v1's catalogd"},
		&cli.StringFlag{Name: "http-name",
			Usage: "answer catalogd's API for the catalog `NAME` alone; other names get 404 (default any name)"},
		&cli.StringFlag{Name: "http-gates", Value: "metas,graphql",
			Usage: "`GATES` of catalogd's API that are on: metas, graphql, both with a comma, or none"},
		&cli.StringFlag{Name: "title", DefaultText: serve.DefaultTitle,
			Usage: "`TEXT` that the web pages call the catalog by"},
		&cli.StringFlag{Name: "metrics-addr",
			Usage: "serve Prometheus metrics over plain HTTP at `ADDRESS`, path /metrics"},
		&cli.IntFlag{Name: "max-connections", Value: serve.DefaultConnections,
			Usage: "accept at most `N` connections (default fewer if memory or open files are limited)"},
		&cli.IntFlag{Name: "max-streams", Value: serve.DefaultStreams,
			Usage: "accept at most `N` concurrent calls per connection"},
		compatFlag(),
	}
}

// serverOptions reads [serverFlags].
func (p *program) serverOptions(c *cli.Context) (serve.Options, error) {
	o := serve.Options{
		Port: c.Int("port"), TerminationLog: c.String("termination-log"), Log: p.log, Version: version.Release(),
		HTTPAddr: c.String("http-addr"), MetricsAddr: c.String("metrics-addr"), TLSCert: c.String("tls-cert"),
		TLSKey: c.String("tls-key"), ReloadEvery: c.Duration("reload-every"),
		Limits: serve.Limits{Connections: c.Int("max-connections"), Streams: c.Int("max-streams")},
	}
	switch {
	case o.Port < 0 || o.Port > 65535:
		return o, cmdline.Usagef("invalid --port value %d, expected 0 to 65535", o.Port)
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return o, cmdline.Usagef("%v", serve.ErrTLSFlags)
	case o.ReloadEvery < 0:
		return o, cmdline.Usagef("invalid --reload-every value %v, expected 0 or more", o.ReloadEvery)
	case o.Limits.Connections < 1:
		return o, cmdline.Usagef("invalid --max-connections value %d, expected 1 or more", o.Limits.Connections)
	case o.Limits.Streams < 1:
		return o, cmdline.Usagef("invalid --max-streams value %d, expected 1 or more", o.Limits.Streams)
	}
	if err := httpOptions(c, &o); err != nil {
		return o, err
	}
	if !c.IsSet("max-connections") {
		o.Limits.Connections = 0 // as many as memory and open files allow
	}
	// The default is the termination log of a pod; outside of a pod it cannot be written and is not needed.
	if !c.IsSet("termination-log") && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		o.TerminationLog = ""
	}
	return o, nil
}

// httpOptions reads the flags of --http-addr.
func httpOptions(c *cli.Context, o *serve.Options) (err error) {
	for _, name := range []string{"http-name", "http-gates", "title"} {
		if c.IsSet(name) && o.HTTPAddr == "" {
			return cmdline.Usagef("--%s has no effect without --http-addr", name)
		}
	}
	o.HTTPName, o.HTTPTitle = c.String("http-name"), c.String("title")
	if c.IsSet("http-name") {
		if err := o.CheckHTTPName(); err != nil {
			return cmdline.Usagef("invalid --http-name value %q: %v", o.HTTPName, err)
		}
	}
	if err := o.SetHTTPGates(c.String("http-gates")); err != nil {
		return cmdline.Usagef("invalid --http-gates value: %v", err)
	}
	return nil
}

// runServer serves until ctx ends, and reloads the catalog on SIGHUP.
func (p *program) runServer(ctx context.Context, src serve.Source, o serve.Options) error {
	serve.FitProcess(&o.Limits, o.Log)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hangups, reload := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	o.Reload = reload
	stderr, ok := p.stderr.(*os.File)
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
