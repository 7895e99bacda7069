package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
	"github.com/operator-bindery/bindery/sqlite"
)

// common are the flags of both serve commands.
type common struct {
	serve.Options
	debug     bool
	logFormat string
	httpGates string
	httpHosts string
}

func (c *common) define(p *parser) {
	p.stringVar(&c.Address, "address", "", "")
	p.intVar(&c.Port, "port", "p", serve.DefaultPort)
	p.stringVar(&c.TerminationLog, "termination-log", "t", "/dev/termination-log")
	p.BoolVar(&c.debug, "debug", false, "")
	p.stringVar(&c.logFormat, "log-format", "", "text")
	p.DurationVar(&c.ReloadEvery, "reload-every", serve.DefaultReloadEvery, "")
	p.stringVar(&c.TLSCert, "tls-cert", "", "")
	p.stringVar(&c.TLSKey, "tls-key", "", "")
	p.stringVar(&c.HTTPAddr, "http-addr", "", "")
	p.stringVar(&c.HTTPName, "http-name", "", "")
	p.stringVar(&c.HTTPTitle, "title", "", "")
	p.stringVar(&c.httpHosts, "http-host", "", "")
	p.stringVar(&c.httpGates, "http-gates", "", "metas,graphql")
	p.stringVar(&c.MetricsAddr, "metrics-addr", "", "")
	p.IntVar(&c.Limits.Connections, "max-connections", serve.DefaultConnections, "")
	p.IntVar(&c.Limits.Streams, "max-streams", serve.DefaultStreams, "")
}

// check refuses invalid values and distinguishes given values from defaults.
func (c *common) check(p *parser) error {
	switch {
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("invalid port %d", c.Port)
	case c.logFormat != "text" && c.logFormat != "json":
		return fmt.Errorf("invalid --log-format value %q, expected (text|json)", c.logFormat)
	case c.ReloadEvery < 0:
		return fmt.Errorf("invalid --reload-every value %v, expected 0 or more", c.ReloadEvery)
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return serve.ErrTLSFlags
	case c.Limits.Connections < 1:
		return fmt.Errorf("invalid --max-connections value %d, expected 1 or more", c.Limits.Connections)
	case c.Limits.Streams < 1:
		return fmt.Errorf("invalid --max-streams value %d, expected 1 or more", c.Limits.Streams)
	}
	if err := c.checkHTTP(p); err != nil {
		return err
	}
	connections := c.Limits.Connections
	c.Limits.Connections = 0 // as many as memory allows, unless the flag is given
	p.Visit(func(f *flag.Flag) {
		if f.Name == "max-connections" {
			c.Limits.Connections = connections
		}
	})
	return nil
}

// checkHTTP refuses invalid values of the flags of --http-addr, and those without effect.
func (c *common) checkHTTP(p *parser) (err error) {
	p.Visit(func(f *flag.Flag) {
		switch {
		case f.Name == "http-host": // of metrics and profiles too
			if wrong := c.SetHTTPHosts(c.httpHosts); wrong != nil {
				err = fmt.Errorf("invalid --http-host value: %w", wrong)
			}
		case f.Name != "http-name" && f.Name != "http-gates" && f.Name != "title":
		case c.HTTPAddr == "":
			err = fmt.Errorf("--%s has no effect without --http-addr", f.Name)
		case f.Name == "http-name" && err == nil:
			if err = c.CheckHTTPName(); err != nil {
				err = fmt.Errorf("invalid --http-name value %q: %w", c.HTTPName, err)
			}
		}
	})
	if err != nil {
		return err
	}
	if err := c.SetHTTPGates(c.httpGates); err != nil {
		return fmt.Errorf("invalid --http-gates value: %w", err)
	}
	return nil
}

func (c *common) logger(stderr io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if c.debug {
		o.Level = slog.LevelDebug
	}
	if c.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(stderr, o))
	}
	return slog.New(slog.NewTextHandler(stderr, o))
}

// run serves until it is stopped and reloads the catalog on SIGHUP.
func (c *common) run(ctx context.Context, src serve.Source) error {
	c.Limits.FitProcess(c.Log)
	if !c.CacheOnly {
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		c.Reload = hangups
	}
	return serve.Run(ctx, src, c.Options)
}

func serveCatalog(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c common
	p := newParser(usageServe)
	c.define(p)
	p.stringVar(&c.CacheDir, "cache-dir", "", "")
	p.BoolVar(&c.CacheOnly, "cache-only", false, "")
	p.BoolVar(&c.EnforceIntegrity, "cache-enforce-integrity", false, "")
	p.stringVar(&c.PprofAddr, "pprof-addr", "", "")
	p.BoolVar(&c.PprofCapture, "pprof-capture-profiles", false, "")
	rest, err := p.parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, usageServe)
		return nil
	case err != nil:
		return err
	case len(rest) != 1:
		return usageError{fmt.Errorf("accepts 1 arg(s), received %d", len(rest)), usageServe}
	}
	if err := c.check(p); err != nil {
		return usageError{err, usageServe}
	}
	c.Refresh = opmcache.Refresh
	c.Log = c.logger(stderr)
	src, err := serve.Directory(rest[0])
	if err != nil {
		return err
	}
	return c.run(ctx, src)
}

func serveDatabase(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var (
		c                 common
		database, timeout string
		skipMigrate       bool
	)
	p := newParser(usageRegistryServe)
	c.define(p)
	p.stringVar(&database, "database", "d", "bundles.db")
	p.stringVar(&timeout, "timeout-seconds", "", "infinite")
	p.BoolVar(&skipMigrate, "skip-migrate", false, "")
	rest, err := p.parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, usageRegistryServe)
		return nil
	case err != nil:
		return err
	case len(rest) > 0:
		return usageError{fmt.Errorf("unexpected argument %q", rest[0]), usageRegistryServe}
	}
	if err := c.check(p); err != nil {
		return usageError{err, usageRegistryServe}
	}
	if timeout != "infinite" {
		seconds, err := strconv.ParseUint(timeout, 10, 31)
		if err != nil {
			return usageError{fmt.Errorf("invalid timeout %q", timeout), usageRegistryServe}
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	c.Log = c.logger(stderr)
	return c.run(ctx, serve.Database(ctx, database, sqlite.Options{}))
}
