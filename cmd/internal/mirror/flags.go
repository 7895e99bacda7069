package mirror

import (
	"context"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// runOptions are the flags of the commands that run, or prepare a run.
type runOptions struct {
	SetOptions
	option.Image
	option.Answer
	account, shard, bandwidth   string
	with                        cli.StringSlice
	perHost                     int
	archiveSize, against, since string
	includeRoot                 bool
	idmsScope                   string
}

// fileFlags say where files of runs are.
func (o *runOptions) fileFlags() []cli.Flag {
	return program.Flags([]cli.Flag{
		&cli.StringFlag{Name: "workspace", Destination: &o.Workspace,
			Usage: "`DIR` for files of runs, in DIR/working-dir (default that of the archive)"},
		&cli.StringFlag{Name: "from", Destination: &o.From, Usage: "`DIR` with the archive to read"},
	}, o.sourceFlags(), []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Destination: &o.Request.DryRun, Usage: "find out what would be copied, with sizes, and copy nothing",
			EnvVars: program.Env("dry-run")},
		&cli.StringFlag{Name: "account", Destination: &o.account, Usage: "write the account of the run as JSON to `FILE`"},
	})
}

// copyFlags say how images are copied.
func (o *runOptions) copyFlags() []cli.Flag {
	const group = "copying"
	return []cli.Flag{
		&cli.StringFlag{Name: "on-missing", Destination: (*string)(&o.Request.OnMissing), Value: string(mirror.SkipBundle), Category: group,
			Usage: "what becomes of a catalog that names images which are not available (skip-bundle|fail)"},
		&cli.StringSliceFlag{Name: "with", Destination: &o.with, Value: cli.NewStringSlice("signatures", "referrers"), Category: group,
			DefaultText: "signatures,referrers", Usage: "copy `KINDS` of attachments (signatures|referrers|none)"},
		&cli.BoolFlag{Name: "recheck", Destination: &o.Request.Recheck, Category: group,
			Usage: "look for new signatures of images that were mirrored before"},
		&cli.StringFlag{Name: "sparse", Destination: (*string)(&o.Request.Sparse), Value: string(store.SparseKeep), Category: group,
			Usage: "an index of which only some platforms are copied is written unchanged, refused or rewritten " +
				"(keep|error|trim)"},
		&cli.IntFlag{Name: "max-nested-paths", Destination: &o.Request.Target.MaxNestedPaths, Category: group, DefaultText: "no limit",
			Usage: "maximum number `N` of path components at the destination; the rest are joined with dashes"},
		&cli.BoolFlag{Name: "prune-blocked", Destination: &o.Request.PruneBlocked, Category: group,
			Usage: "take bundles that name blocked images out of their catalogs"},
		&cli.IntFlag{Name: "parallel-images", Destination: &o.Request.ParallelImages, Value: 4, Category: "work", Usage: "copy as many blobs at once as `N` images have; with 1, image by image"},
		&cli.IntFlag{Name: "parallel-layers", Destination: &o.Request.ParallelLayers, Value: 5, Category: "work",
			Usage: "copy `N` blobs of each image at once"},
		&cli.IntFlag{Name: "per-host", Destination: &o.perHost, Category: "work", DefaultText: "no limit",
			Usage: "send at most `N` requests at once to each registry"},
		&cli.StringFlag{Name: "max-bandwidth", Destination: &o.bandwidth, Category: "work", DefaultText: "no limit",
			Usage: "transfer at most `SIZE` a second, such as 20MiB"},
		&cli.DurationFlag{Name: "image-timeout", Destination: &o.Request.Timeout, Category: "work", DefaultText: "none",
			Usage: "give up on an image after `DURATION`; an image that moves no bytes is given up after two minutes"},
		option.JobsFlag(&o.Jobs, "work"),
	}
}

// mediumFlags say how archives are written.
func (o *runOptions) mediumFlags() []cli.Flag {
	const group = "archive"
	return []cli.Flag{
		&cli.StringFlag{Name: "archive-format", Destination: (*string)(&o.Request.Medium.Form), Value: string(medium.OCI), Category: group,
			Usage: "`FORM` of the archive (oci|oc-mirror): an OCI layout, or what oc-mirror reads"},
		&cli.StringFlag{Name: "archive-size", Destination: &o.archiveSize, Category: group, DefaultText: "archiveSize of the image set, else 500GiB",
			Usage: "maximum `SIZE` of a segment of the archive"},
		&cli.BoolFlag{Name: "strict-archive", Destination: &o.Request.Medium.Strict, Category: group,
			Usage: "refuse an image with a layer larger than a segment"},
		&cli.StringFlag{Name: "against", Destination: &o.against, Category: group,
			Usage: "pack only what is not in the inventory `FILE` (see mirror inventory)"},
		&cli.StringFlag{Name: "since", Destination: &o.since, Category: group,
			Usage: "leave out what archives before `YYYY-MM-DD` carried (default what all earlier ones carried)"},
		&cli.BoolFlag{Name: "all", Destination: &o.Request.All, Category: group, Usage: "leave nothing out, whatever earlier archives carried"},
		&cli.BoolFlag{Name: "include-trusted-root", Destination: &o.includeRoot, Category: group,
			Usage: "put the trusted root (--trusted-root) into the archive; the other side uses it with --trusted-root sha256:HEX"},
	}
}

// catalogFlags say how catalogs are filtered and rebuilt, and which files clusters get.
func (o *runOptions) catalogFlags() []cli.Flag {
	const group = "catalogs"
	return []cli.Flag{
		&cli.StringFlag{Name: "catalog-base", Destination: (*string)(&o.Request.CatalogBase), Value: string(mirror.KeepBase), Category: group,
			Usage: "rebuild catalogs on the layers of their source, with its server, or on this program's " +
				"(keep|replace)"},
		&cli.StringFlag{Name: "server", Destination: &o.ServerName, Category: group, DefaultText: "that of the source",
			Usage: "server of the catalogs: static program `FILE`, \"base\", \"embedded\" or \"none\""},
		o.CacheFlag(group), o.MaxFlag(group), o.CacheKeyFlag(),
		&cli.StringFlag{Name: "compression", Destination: (*string)(&o.Compression), Value: "gzip", Usage: "layer compression `CODEC` (gzip|zstd|auto)",
			Category: group},
		&cli.StringFlag{Name: "idms-scope", Destination: &o.idmsScope, Value: "namespace", Category: "cluster resources",
			Usage: "mirror sets name namespaces or repositories (namespace|repository)"},
		&cli.BoolFlag{Name: "pin-catalogs", Destination: &o.Request.Resources.PinCatalogs, Category: "cluster resources", Usage: "name catalogs by digest"},
		&cli.BoolFlag{Name: "icsp", Destination: &o.Request.Resources.Policy, Category: "cluster resources",
			Usage: "also write an ImageContentSourcePolicy, for clusters before 4.13"},
	}
}

// readValues reads the flags with few values.
func (o *runOptions) readValues(p *option.Session, with *mirror.Options) (err error) {
	if with.With, err = option.AttachmentKinds(o.with.Value()); err != nil {
		return err
	}
	if with.Shard, err = option.ReadShard(o.shard); err != nil {
		return err
	}
	switch server := o.ServerName; server {
	case "", "base", "none", build.ServerEmbedded:
	default:
		f, err := regularfile.OpenSeekable(server) // before all images are copied
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return &cmdline.Error{Class: cmdline.ClassLocal, Object: server, Err: fmt.Errorf("--server: %w", err)}
		}
	}
	return o.readResources(p, &with.Resources)
}

// readMedium reads the flags about archives.
func (o *runOptions) readMedium(ctx context.Context, p *option.Session, with *mirror.Options) error {
	if text := o.archiveSize; text != "" {
		n, err := cmdline.ParseSize(text)
		if err != nil || n <= 0 {
			return cmdline.Usagef("invalid --archive-size value %q, expected a size such as 4GiB", text)
		}
		with.Medium.SegmentBytes = n
	}
	if with.Mode != mirror.ToDisk {
		for _, name := range []string{"archive-size", "strict-archive", "against", "since", "all", "archive-format",
			"include-trusted-root"} {
			if p.Given(name) {
				return cmdline.Usagef("--%s is for writing an archive: the destination is a registry", name)
			}
		}
	}
	if o.includeRoot {
		var err error
		if with.TrustedRoot, err = o.TrustedRoot.Read(ctx); err != nil {
			return err
		}
		p.Log.Info("the archive gets a trusted root: the other side uses it with --trusted-root " +
			digest.FromBytes(with.TrustedRoot).String())
	}
	if text := o.since; text != "" {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return cmdline.Usagef("invalid --since value %q, expected YYYY-MM-DD", text)
		}
		with.Since = at
	}
	if file := o.against; file != "" {
		var err error
		if with.Against, with.AgainstDigest, err = readInventory(ctx, file); err != nil {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: file,
				Err:  fmt.Errorf("--against %s: %w", file, err),
				Hint: "\"mirror inventory\" writes the file"}
		}
	}
	return nil
}
