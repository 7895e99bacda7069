package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/operator-bindery/bindery/opmcache"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/sqlite"
)

// common are the flags of both commands.
type common struct {
	serve.Options
	debug bool
}

func (c *common) define(p *parser) {
	p.intVar(&c.Port, "port", "p", serve.DefaultPort)
	p.stringVar(&c.TerminationLog, "termination-log", "t", "/dev/termination-log")
	p.BoolVar(&c.debug, "debug", false, "")
}

func (c *common) logger(stderr io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if c.debug {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
}

func serveCatalog(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var (
		c       common
		profile bool
	)
	p := newParser(usageServe)
	c.define(p)
	p.stringVar(&c.CacheDir, "cache-dir", "", "")
	p.BoolVar(&c.CacheOnly, "cache-only", false, "")
	p.BoolVar(&c.EnforceIntegrity, "cache-enforce-integrity", false, "")
	p.stringVar(&c.PprofAddr, "pprof-addr", "", "")
	p.BoolVar(&profile, "pprof-capture-profiles", false, "")
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
	if err := checkPort(c.Port); err != nil {
		return usageError{err, usageServe}
	}
	c.Refresh = opmcache.Refresh
	c.Log = c.logger(stderr)
	if profile {
		c.Log.Warn("profiles of the start are not captured", "flag", "pprof-capture-profiles")
	}
	src, err := serve.Directory(rest[0])
	if err != nil {
		return err
	}
	return serve.Run(ctx, src, c.Options)
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
	if err := checkPort(c.Port); err != nil {
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
	return serve.Run(ctx, serve.Database(ctx, database, sqlite.Options{}), c.Options)
}
