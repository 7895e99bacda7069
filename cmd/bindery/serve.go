package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
	"github.com/operator-bindery/bindery/serve/probe"
	"github.com/operator-bindery/bindery/sqlite"
)

func (p *program) serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve a catalog over gRPC and HTTP",
		ArgsUsage: "DIR|DB|IMAGE",
		Description: `Serves the catalog API, health checks and reflection until SIGINT or SIGTERM; open calls
may then finish. --http-addr also serves web pages and the API of OLM v1's catalogd.

A directory or database is reloaded when it changes, and any catalog on SIGHUP, while the previous one is
served. If loading fails, the previous one stays.

With --cache-dir the serve cache of the catalog is stored there; a cache that does not match the catalog is
rebuilt, and one that cannot be written is replaced by a temporary one. A cache of opm (pogreb.v1 or json) in
that directory is neither read nor changed; --cache-only updates it in its own format, for opm.` +
			examples("bindery serve catalog --port 50051", "bindery serve index.db -p 50052",
				"bindery serve catalog -p 50051 --http-addr localhost:8080",
				"bindery serve catalog -p 50051 --http-addr localhost:8080 --http-name community --http-gates metas",
				"bindery serve catalog -p 50052 --metrics-addr localhost:9090 --reload-every 1m",
				"bindery serve catalog --cache-dir cache --cache-only",
				"bindery serve oci:catalog.oci:v1 --port 50051"),
		Flags: append(append(serverFlags(), readFlags()...),
			&cli.StringFlag{Name: "cache-dir", Usage: "store the serve cache in `DIR`"},
			&cli.BoolFlag{Name: "cache-only", Usage: "fill the cache and exit"},
			&cli.BoolFlag{Name: "cache-enforce-integrity",
				Usage: "fail if the cache does not match the catalog, instead of rebuilding it"},
			&cli.StringFlag{Name: "pprof-addr",
				Usage: "serve pprof profiles over HTTP at `ADDRESS`; empty disables them"},
			&cli.BoolFlag{Name: "pprof-capture-profiles", Usage: "also serve a profile of the startup there"},
		),
		Action: exactly(1, p.serve),
	}
}

// registryServeCommand returns opm's command for serving a database.
func (p *program) registryServeCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "serve an index database over gRPC",
		Description: `The database is opened read-only; all schema versions are supported. Started as
"registry-server" the program is this command.` + examples(
			"bindery registry serve -d index.db -p 50051"),
		Flags: append(serverFlags(),
			&cli.StringFlag{Name: "database", Aliases: []string{"d"}, Value: "bundles.db",
				Usage: "`FILE` of the database"},
			&cli.BoolFlag{Name: "skip-migrate", Hidden: true, Usage: "ignored: databases are never migrated"},
			&cli.StringFlag{Name: "timeout-seconds", Value: "infinite", Usage: "stop after `SECONDS`"},
		),
		Action: exactly(0, p.registryServe),
	}
}

func (p *program) serve(c *cli.Context) (err error) {
	o, err := p.serverOptions(c)
	if err == nil {
		_, err = p.compat(c) // it is used for databases only
	}
	if err != nil {
		return err
	}
	o.CacheDir, o.CacheOnly, o.PprofAddr = c.String("cache-dir"), c.Bool("cache-only"), c.String("pprof-addr")
	o.EnforceIntegrity, o.PprofCapture = c.Bool("cache-enforce-integrity"), c.Bool("pprof-capture-profiles")
	o.Refresh = opmcache.Refresh
	ref := c.Args().First()
	src, err := p.serveSource(c.Context, c, ref)
	if err != nil {
		return err
	}
	return p.runServer(c.Context, src.Reopened(func(ctx context.Context) (serve.Source, error) {
		return p.serveSource(ctx, c, ref)
	}), o)
}

// serveSource opens the catalog to serve. An image is not watched for changes, as that would mean polling the registry;
// SIGHUP reloads it.
func (p *program) serveSource(ctx context.Context, c *cli.Context, ref string) (serve.Source, error) {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return serve.Source{}, err
	case kind == render.Database:
		return p.databaseSource(ctx, c, ref)
	case kind != render.Image && kind != render.ManifestsDirectory:
		return serve.Directory(ref)
	}
	o, err := p.renderOptions(c)
	if err != nil {
		return serve.Source{}, err
	}
	if kind == render.Image {
		return p.imageSource(ctx, ref, o)
	}
	blobs, err := o.Render(ctx, ref)
	return serve.Blobs(ref, blobs).Watched(ref), err
}

func (p *program) databaseSource(ctx context.Context, c *cli.Context, path string) (serve.Source, error) {
	compat, err := p.compat(c)
	if err != nil {
		return serve.Source{}, err
	}
	return serve.Database(ctx, path, sqlite.Options{Compat: compat}), nil
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
			return cmdline.Usagef("invalid --timeout-seconds value %q, expected a number or infinite", text)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	path := c.String("database")
	// Stat before opening: opening a FIFO would block. The error has the wording of open.
	if _, err := os.Stat(path); err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			pathErr.Op = "open"
		}
		return err
	}
	src, err := p.databaseSource(ctx, c, path)
	if err != nil {
		return err
	}
	return p.runServer(ctx, src, o)
}

func (p *program) probeCommand() *cli.Command {
	return &cli.Command{
		Name:            "probe",
		Usage:           "check the health of a gRPC server",
		ArgsUsage:       "--addr HOST:PORT",
		SkipFlagParsing: true,
		Flags:           probeFlags(),
		Description: `Flags, output and exit status are those of grpc_health_probe: 0 serving, 1 invalid
arguments, 2 no connection, 3 the call failed, 4 not serving.` +
			examples("bindery probe -addr localhost:50051",
				"bindery probe -addr localhost:50051 -connect-timeout 5s -service api.Registry"),
		Action: func(c *cli.Context) error {
			if status := probe.Run(c.Context, c.Args().Slice(), p.stdout, p.stderr); status != 0 {
				return &cmdline.ExitStatus{Status: status}
			}
			return nil
		},
	}
}

// probeFlags returns the flags of grpc_health_probe for the help text; the command parses them itself.
func probeFlags() []cli.Flag {
	var all []cli.Flag
	probe.Flags().VisitAll(func(f *flag.Flag) {
		usage := strings.ReplaceAll(f.Usage, "(with -tls)", "with --tls:")
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			all = append(all, &cli.BoolFlag{Name: f.Name, Usage: usage})
			return
		}
		all = append(all, &cli.StringFlag{Name: f.Name, Usage: usage, DefaultText: f.DefValue})
	})
	return all
}
