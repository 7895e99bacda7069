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
}

func (c *common) define(p *parser) {
	p.BoolVar(&c.debug, "debug", false, "")
	p.stringVar(&c.logFormat, "log-format", "", "text")
	for _, f := range c.Flags() {
		switch v := f.Value.(type) {
		case *string:
			p.stringVar(v, f.Name, f.Short, *v)
		case *int:
			p.intVar(v, f.Name, f.Short, *v)
		case *time.Duration:
			p.DurationVar(v, f.Name, *v, "")
		}
	}
}

// check refuses invalid values and distinguishes given values from defaults.
func (c *common) check(p *parser) error {
	if c.logFormat != "text" && c.logFormat != "json" {
		return fmt.Errorf("invalid --log-format value %q, expected (text|json)", c.logFormat)
	}
	given := map[string]bool{}
	p.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return c.Check(func(name string) bool { return given[name] })
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
