package mirror

import (
	"fmt"
	"slices"
	"time"

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

// mirrorRunFlags say where files of runs are.
func mirrorRunFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "workspace",
			Usage: "`DIR` for files of runs, in DIR/working-dir (default that of the archive)"},
		&cli.StringFlag{Name: "from", Usage: "`DIR` with the archive to read"},
		&cli.StringSliceFlag{Name: "catalog",
			Usage: "read `REF=SOURCE`: the catalog SOURCE in place of the catalog REF; can be repeated"},
		&cli.StringSliceFlag{Name: "installed",
			Usage: "look only for the way of `PACKAGE=VERSION` to the kept head; can be repeated"},
		&cli.BoolFlag{Name: "dry-run", Usage: "find out what would be copied, with sizes, and copy nothing",
			EnvVars: program.Env("dry-run")},
		&cli.StringFlag{Name: "account", Usage: "write the account of the run as JSON to `FILE`"},
	}
}

// mirrorCopyFlags say how images are copied.
func mirrorCopyFlags() []cli.Flag {
	const group = "copying"
	return []cli.Flag{
		&cli.StringFlag{Name: "on-missing", Value: string(mirror.SkipBundle), Category: group,
			Usage: "what becomes of a catalog that names images which are not available (skip-bundle|fail)"},
		&cli.StringSliceFlag{Name: "with", Value: cli.NewStringSlice("signatures", "referrers"), Category: group,
			DefaultText: "signatures,referrers", Usage: "copy `KINDS` of attachments (signatures|referrers|none)"},
		&cli.BoolFlag{Name: "recheck", Category: group,
			Usage: "look for new signatures of images that were mirrored before"},
		&cli.StringFlag{Name: "sparse", Value: string(store.SparseKeep), Category: group,
			Usage: "an index of which only some platforms are copied is written unchanged, refused or rewritten " +
				"(keep|error|trim)"},
		&cli.IntFlag{Name: "max-nested-paths", Category: group, DefaultText: "no limit",
			Usage: "maximum number `N` of path components at the destination; the rest are joined with dashes"},
		&cli.BoolFlag{Name: "prune-blocked", Category: group,
			Usage: "take bundles that name blocked images out of their catalogs"},
		&cli.IntFlag{Name: "parallel-images", Value: 4, Category: "work", Usage: "copy `N` images at once"},
		&cli.IntFlag{Name: "parallel-layers", Value: 5, Category: "work",
			Usage: "copy `N` blobs of each image at once"},
		&cli.IntFlag{Name: "per-host", Category: "work", DefaultText: "no limit",
			Usage: "send at most `N` requests at once to each registry"},
		&cli.StringFlag{Name: "max-bandwidth", Category: "work", DefaultText: "no limit",
			Usage: "transfer at most `SIZE` a second, such as 20MiB"},
		&cli.DurationFlag{Name: "image-timeout", Category: "work", DefaultText: "none",
			Usage: "give up on an image after `DURATION`; an image that moves no bytes is given up after two minutes"},
		program.InCategory(program.JobsFlag(), "work"),
	}
}

// mirrorMediumFlags say how archives are written.
func mirrorMediumFlags() []cli.Flag {
	const group = "archive"
	return []cli.Flag{
		&cli.StringFlag{Name: "archive-format", Value: string(medium.OCI), Category: group,
			Usage: "`FORM` of the archive (oci|oc-mirror): an OCI layout, or what oc-mirror reads"},
		&cli.StringFlag{Name: "archive-size", Category: group, DefaultText: "archiveSize of the image set, else 500GiB",
			Usage: "maximum `SIZE` of a segment of the archive"},
		&cli.BoolFlag{Name: "strict-archive", Category: group,
			Usage: "refuse an image with a layer larger than a segment"},
		&cli.StringFlag{Name: "against", Category: group,
			Usage: "pack only what is not in the inventory `FILE` (see mirror inventory)"},
		&cli.StringFlag{Name: "since", Category: group,
			Usage: "leave out what archives before `YYYY-MM-DD` carried (default what all earlier ones carried)"},
		&cli.BoolFlag{Name: "all", Category: group, Usage: "leave nothing out, whatever earlier archives carried"},
	}
}

// mirrorCatalogFlags say how catalogs are filtered and rebuilt, and which files clusters get.
func mirrorCatalogFlags() []cli.Flag {
	const group = "catalogs"
	return []cli.Flag{
		&cli.StringFlag{Name: "catalog-base", Value: string(mirror.KeepBase), Category: group,
			Usage: "rebuild catalogs on the layers of their source, with its server, or on this program's " +
				"(keep|replace)"},
		&cli.StringFlag{Name: "server", Category: group, DefaultText: "that of the source",
			Usage: "server of the catalogs: static program `FILE`, \"base\", \"embedded\" or \"none\""},
		option.ServeCacheFlag(group), option.MaxLayersFlag(group),
		&cli.StringFlag{Name: "compression", Value: "gzip", Usage: "layer compression `CODEC` (gzip|zstd|auto)",
			Category: group},
		&cli.StringFlag{Name: "idms-scope", Value: "namespace", Category: "cluster resources",
			Usage: "mirror sets name namespaces or repositories (namespace|repository)"},
		&cli.BoolFlag{Name: "pin-catalogs", Category: "cluster resources", Usage: "name catalogs by digest"},
		&cli.BoolFlag{Name: "icsp", Category: "cluster resources",
			Usage: "also write an ImageContentSourcePolicy, for clusters before 4.13"},
	}
}

// checkMirrorFlags reads the flags with few values.
func checkMirrorFlags(p *option.Session, c *cli.Context, o *mirror.Options) (err error) {
	if o.OnMissing != mirror.SkipBundle && o.OnMissing != mirror.FailMissing {
		return cmdline.Usagef("invalid --on-missing value %q, expected (skip-bundle|fail)", o.OnMissing)
	}
	if o.Base != mirror.KeepBase && o.Base != mirror.ReplaceBase {
		return cmdline.Usagef("invalid --catalog-base value %q, expected (keep|replace)", o.Base)
	}
	if o.With, err = option.AttachmentKinds(c.StringSlice("with")); err != nil {
		return err
	}
	o.Sparse = store.Sparse(c.String("sparse"))
	if !slices.Contains([]store.Sparse{store.SparseKeep, store.SparseRefuse, store.SparseTrim},
		o.Sparse) {
		return cmdline.Usagef("invalid --sparse value %q, expected (keep|error|trim)", o.Sparse)
	}
	if o.Jobs < 1 || o.Jobs > 64 || o.Layers < 1 || o.Layers > 64 {
		return cmdline.Usagef("--parallel-images and --parallel-layers are numbers from 1 to 64")
	}
	switch server := c.String("server"); server {
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
	if n := c.Int("max-nested-paths"); n < 0 {
		return cmdline.Usagef("invalid --max-nested-paths value %d, expected a positive number", n)
	}
	if o.Filter, err = FilterPolicy(p, c); err != nil {
		return err
	}
	o.Compat = o.Filter.Compat
	return readResourceFlags(c, &o.Resources)
}

// mediumOptions reads [mirrorMediumFlags].
func mediumOptions(p *option.Session, c *cli.Context, o *mirror.Options) error {
	o.Medium.Form = medium.Form(c.String("archive-format"))
	if o.Medium.Form != medium.OCI && o.Medium.Form != medium.OCMirror {
		return cmdline.Usagef("invalid --archive-format value %q, expected (oci|oc-mirror)", o.Medium.Form)
	}
	if text := c.String("archive-size"); text != "" {
		n, err := cmdline.ParseSize(text)
		if err != nil || n <= 0 {
			return cmdline.Usagef("invalid --archive-size value %q, expected a size such as 4GiB", text)
		}
		o.Medium.SegmentBytes = n
	}
	o.Medium.Strict, o.All = c.Bool("strict-archive"), c.Bool("all")
	if o.Mode != mirror.ToDisk {
		for _, name := range []string{"archive-size", "strict-archive", "against", "since", "all", "archive-format"} {
			if c.IsSet(name) {
				return cmdline.Usagef("--%s is for writing an archive: the destination is a registry", name)
			}
		}
	}
	if text := c.String("since"); text != "" {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return cmdline.Usagef("invalid --since value %q, expected YYYY-MM-DD", text)
		}
		o.Since = at
	}
	if file := c.String("against"); file != "" {
		if o.All || !o.Since.IsZero() {
			return cmdline.Usagef("--against excludes --since and --all")
		}
		var err error
		if o.Against, o.AgainstDigest, err = readInventory(c.Context, file); err != nil {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: file,
				Err:  fmt.Errorf("--against %s: %w", file, err),
				Hint: "\"mirror inventory\" writes the file"}
		}
	}
	return nil
}
