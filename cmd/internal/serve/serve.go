package serve

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
	"github.com/operator-bindery/bindery/serve/probe"
	"github.com/operator-bindery/bindery/sqlite"
)

// options are the flags of "serve".
type options struct {
	server
	option.Images
	jobs                                      int
	cacheDir, pprofAddr                       string
	cacheOnly, enforceIntegrity, pprofCapture bool
}

// Command returns "serve".
func Command(p *option.Session) *cli.Command {
	o := &options{}
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
			program.Examples("bindery serve catalog --port 50051", "bindery serve index.db -p 50052",
				"bindery serve catalog -p 50051 --http-addr localhost:8080",
				"bindery serve catalog -p 50051 --http-addr localhost:8080 --http-name community --http-gates metas",
				"bindery serve catalog -p 50052 --metrics-addr localhost:9090 --reload-every 1m",
				"bindery serve catalog --cache-dir cache --cache-only",
				"bindery serve oci:catalog.oci:v1 --port 50051"),
		Flags: slices.Concat(o.server.flags(), []cli.Flag{option.JobsFlag(&o.jobs, "work"), o.PlatformFlag()},
			o.Images.Flags(), []cli.Flag{
				&cli.StringFlag{Name: "cache-dir", Usage: "store the serve cache in `DIR`", Destination: &o.cacheDir},
				&cli.BoolFlag{Name: "cache-only", Usage: "fill the cache and exit", Destination: &o.cacheOnly},
				&cli.BoolFlag{Name: "cache-enforce-integrity", Destination: &o.enforceIntegrity,
					Usage: "fail if the cache does not match the catalog, instead of rebuilding it"},
				&cli.StringFlag{Name: "pprof-addr", Destination: &o.pprofAddr,
					Usage: "serve pprof profiles over HTTP at `ADDRESS`; empty disables them"},
				&cli.BoolFlag{Name: "pprof-capture-profiles", Usage: "also serve a profile of the startup there",
					Destination: &o.pprofCapture},
			}),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return serveCatalog(ctx, p, o, args[0])
		})),
	}
}

// databaseOptions are the flags of "registry serve".
type databaseOptions struct {
	server
	database, timeout string
}

// RegistryServeCommand returns opm's command for serving a database.
func RegistryServeCommand(p *option.Session) *cli.Command {
	o := &databaseOptions{}
	return &cli.Command{
		Name:  "serve",
		Usage: "serve an index database over gRPC",
		Description: `The database is opened read-only; all schema versions are supported. Started as
"registry-server" the program is this command.` + program.Examples(
			"bindery registry serve -d index.db -p 50051"),
		Flags: append(o.server.flags(),
			&cli.StringFlag{Name: "database", Aliases: []string{"d"}, Value: "bundles.db", Destination: &o.database,
				Usage: "`FILE` of the database"},
			&cli.BoolFlag{Name: "skip-migrate", Hidden: true, Usage: "ignored: databases are never migrated"},
			&cli.StringFlag{Name: "timeout-seconds", Value: "infinite", Usage: "stop after `SECONDS`",
				Destination: &o.timeout},
		),
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error { return serveDatabase(ctx, p, o) })),
	}
}

func serveCatalog(ctx context.Context, p *option.Session, o *options, ref string) error {
	with, err := o.server.options(p)
	if err == nil {
		_, err = o.Compat(p) // it is used for databases only
	}
	if err != nil {
		return err
	}
	with.CacheDir, with.CacheOnly, with.PprofAddr = o.cacheDir, o.cacheOnly, o.pprofAddr
	with.EnforceIntegrity, with.PprofCapture = o.enforceIntegrity, o.pprofCapture
	with.Refresh = opmcache.Refresh
	src, err := o.source(ctx, p, ref)
	if err != nil {
		return err
	}
	return runServer(p, ctx, src.Reopened(func(ctx context.Context) (serve.Source, error) {
		return o.source(ctx, p, ref)
	}), with)
}

// source opens the catalog to serve. An image is not watched for changes, as that would mean polling the registry;
// SIGHUP reloads it.
func (o *options) source(ctx context.Context, p *option.Session, ref string) (serve.Source, error) {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return serve.Source{}, err
	case kind == render.Database:
		return o.server.source(ctx, p, ref)
	case kind != render.Image && kind != render.ManifestsDirectory:
		return serve.Directory(ref)
	}
	with, err := o.Catalogs.Options(ctx, p, &o.Images, o.jobs, ref)
	if err != nil {
		return serve.Source{}, err
	}
	if kind == render.Image {
		return p.ImageSource(ctx, ref, with)
	}
	blobs, err := with.Render(ctx, ref)
	return serve.Blobs(ref, blobs).Watched(ref), err
}

// source opens a database.
func (o *server) source(ctx context.Context, p *option.Session, path string) (serve.Source, error) {
	compat, err := o.Compat(p)
	if err != nil {
		return serve.Source{}, err
	}
	return serve.Database(ctx, path, sqlite.Options{Compat: compat}), nil
}

func serveDatabase(ctx context.Context, p *option.Session, o *databaseOptions) error {
	with, err := o.options(p)
	if err != nil {
		return err
	}
	if text := o.timeout; text != "infinite" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return cmdline.Usagef("invalid --timeout-seconds value %q, expected a number or infinite", text)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	path := o.database
	// Stat before opening: opening a FIFO would block. The error has the wording of open.
	if _, err := os.Stat(path); err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			pathErr.Op = "open"
		}
		return err
	}
	src, err := o.source(ctx, p, path)
	if err != nil {
		return err
	}
	return runServer(p, ctx, src, with)
}

func ProbeCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:            "probe",
		Usage:           "check the health of a gRPC server",
		ArgsUsage:       "--addr HOST:PORT",
		SkipFlagParsing: true,
		Flags:           probeFlags(),
		Description: `Flags, output and exit status are those of grpc_health_probe: 0 serving, 1 invalid
arguments, 2 no connection, 3 the call failed, 4 not serving.` +
			program.Examples("bindery probe -addr localhost:50051",
				"bindery probe -addr localhost:50051 -connect-timeout 5s -service api.Registry"),
		Action: p.Action(func(ctx context.Context, args []string) error {
			if status := probe.Run(ctx, args, p.Stdout, p.Stderr); status != 0 {
				return &cmdline.ExitStatus{Status: status}
			}
			return nil
		}),
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
