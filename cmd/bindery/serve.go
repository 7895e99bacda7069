package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/internal/cliutil"
	"github.com/operator-bindery/bindery/opmcache"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/probe"
	"github.com/operator-bindery/bindery/sqlite"
)

func (p *program) serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve a catalog over gRPC",
		ArgsUsage: "DIR|DB|IMAGE",
		Description: "The server answers the catalog API, health checks and reflection until SIGINT or SIGTERM; then it lets its\n" +
			"clients finish. With --cache-dir the ready-to-serve form of the catalog is kept there; a cache that does not\n" +
			"match the catalog is built anew, and one that cannot be written is replaced by a temporary one. A cache of opm's\n" +
			"(pogreb.v1 or json) in that directory is read as it is; --cache-only brings it up to date in its own format." +
			examples("bindery serve catalog --port 50051", "bindery serve index.db -p 50052",
				"bindery serve catalog --cache-dir cache --cache-only", "bindery serve oci:catalog.oci:v1 --port 50051"),
		Flags: append(append(serverFlags(), readFlags()...),
			&cli.StringFlag{Name: "cache-dir", Usage: "keep the serve cache in `DIR`"},
			&cli.BoolFlag{Name: "cache-only", Usage: "fill the cache and end"},
			&cli.BoolFlag{Name: "cache-enforce-integrity", Usage: "end with an error where the cache does not match the catalog"},
			&cli.StringFlag{Name: "pprof-addr", Usage: "offer profiles over HTTP at `ADDRESS`; empty means nowhere"},
			&cli.BoolFlag{Name: "pprof-capture-profiles", Hidden: true, Usage: "capture a profile of the start"},
		),
		Action: exactly(1, p.serve),
	}
}

// registryServeCommand is opm's name for serving a database.
func (p *program) registryServeCommand() *cli.Command {
	return &cli.Command{
		Name:        "serve",
		Usage:       "serve an index database over gRPC",
		Description: "The database is only read, whatever the version of its schema is.\nStarted as \"registry-server\" the program is this command." + examples("bindery registry serve -d index.db -p 50051"),
		Flags: append(serverFlags(),
			&cli.StringFlag{Name: "database", Aliases: []string{"d"}, Value: "bundles.db", Usage: "`FILE` of the database"},
			&cli.BoolFlag{Name: "skip-migrate", Hidden: true, Usage: "databases are never migrated: nothing is skipped"},
			&cli.StringFlag{Name: "timeout-seconds", Value: "infinite", Usage: "end after `SECONDS`"},
		),
		Action: exactly(0, p.registryServe),
	}
}

func serverFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "port", Aliases: []string{"p"}, Value: serve.DefaultPort, Usage: "listen on TCP port `N` of all interfaces; 0 means any"},
		&cli.StringFlag{Name: "termination-log", Aliases: []string{"t"}, Value: "/dev/termination-log", Usage: "write the error that ends the server to `FILE` as well"},
		compatFlag(),
	}
}

// serverOptions reads [serverFlags].
func (p *program) serverOptions(c *cli.Context) (serve.Options, error) {
	o := serve.Options{Port: c.Int("port"), TerminationLog: c.String("termination-log"), Log: p.log}
	if o.Port < 0 || o.Port > 65535 {
		return o, cliutil.Usagef("invalid --port value %d, expected 0 to 65535", o.Port)
	}
	// The default is the place of a pod's log; outside of a pod it cannot be written and nobody would read it.
	if !c.IsSet("termination-log") && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		o.TerminationLog = ""
	}
	return o, nil
}

func (p *program) serve(c *cli.Context) (err error) {
	o, err := p.serverOptions(c)
	if err != nil {
		return err
	}
	o.CacheDir, o.CacheOnly, o.PprofAddr = c.String("cache-dir"), c.Bool("cache-only"), c.String("pprof-addr")
	o.EnforceIntegrity = c.Bool("cache-enforce-integrity")
	o.Refresh = opmcache.Refresh
	if c.Bool("pprof-capture-profiles") {
		p.log.Warn("profiles of the start are not captured")
	}
	src, done, err := p.serveSource(c, c.Args().First())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return serve.Run(c.Context, src, o)
}

// serveSource opens what is to be served.
func (p *program) serveSource(c *cli.Context, ref string) (serve.Source, func() error, error) {
	nothing := func() error { return nil }
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return serve.Source{}, nil, err
	case kind == render.Image:
		o, err := p.renderOptions(c)
		if err != nil {
			return serve.Source{}, nil, err
		}
		return p.imageSource(c.Context, ref, o)
	case kind == render.Database:
		src, err := p.databaseSource(c, ref)
		return src, nothing, err
	case kind == render.ManifestsDirectory:
		o, err := p.renderOptions(c)
		if err != nil {
			return serve.Source{}, nil, err
		}
		blobs, err := render.Reference(c.Context, ref, o)
		return serve.Blobs(ref, blobs), nothing, err
	}
	src, err := serve.Directory(ref)
	return src, nothing, err
}

func (p *program) databaseSource(c *cli.Context, path string) (serve.Source, error) {
	compat, err := p.compat(c)
	if err != nil {
		return serve.Source{}, err
	}
	return serve.Database(c.Context, path, sqlite.Options{Compat: compat}), nil
}

func (p *program) registryServe(c *cli.Context) error {
	o, err := p.serverOptions(c)
	if err != nil {
		return err
	}
	ctx := c.Context
	if text := c.String("timeout-seconds"); text != "infinite" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return cliutil.Usagef("invalid --timeout-seconds value %q, expected a number or infinite", text)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	path := c.String("database")
	// A look before opening: a FIFO would be waited for. The words are those of opening a file.
	if _, err := os.Stat(path); err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			pathErr.Op = "open"
		}
		return err
	}
	src, err := p.databaseSource(c, path)
	if err != nil {
		return err
	}
	return serve.Run(ctx, src, o)
}

func (p *program) probeCommand() *cli.Command {
	return &cli.Command{
		Name:            "probe",
		Usage:           "ask a server for its health",
		ArgsUsage:       "-addr HOST:PORT [flags]",
		SkipFlagParsing: true,
		Description: "Flags, output and exit status are those of grpc_health_probe: 0 serving, 1 invalid arguments, 2 no connection,\n" +
			"3 the call failed, 4 not serving. \"bindery probe -h\" lists the flags." +
			examples("bindery probe -addr localhost:50051", "bindery probe -addr localhost:50051 -connect-timeout 5s -service api.Registry"),
		Action: func(c *cli.Context) error {
			if status := probe.Run(c.Context, c.Args().Slice(), p.stdout, p.stderr); status != 0 {
				return &cliutil.ExitStatus{Status: status}
			}
			return nil
		},
	}
}
