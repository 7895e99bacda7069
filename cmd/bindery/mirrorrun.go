package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/indeximage"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

func (p *program) mirrorRunCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "copy operators to a registry or an archive, or from an archive to a registry",
		ArgsUsage: "DESTINATION",
		Description: "Copies what an image set (--config) asks for: filtered catalogs, the bundles and related " +
			"images " +
			"that they name,\n" +
			"additional images, and the signatures and referrers of all of them. The destination decides:\n\n" +
			"  docker://REGISTRY[/PATH]             from registries to a registry; --workspace is needed\n" +
			"  file://DIR                           from registries to an archive in DIR\n" +
			"  docker://REGISTRY[/PATH] --from DIR  from the archive in DIR, or those in its directories, to a " +
			"registry\n\n" +
			"Images come first and catalogs last: a catalog is published when all that it names is there. A bundle " +
			"with an image\n" +
			"that cannot be had is taken out of its catalog (--on-missing), and the exit status is 4. What the " +
			"destination has is\n" +
			"not sent again, so that an interrupted run is repeated to go on. DIR/working-dir of the workspace, the " +
			"archive or\n" +
			"--from gets the files for clusters and the account for the next run." +
			examples("bindery mirror run -c imageset.yaml --workspace mirror docker://registry.example.com/olm",
				"bindery mirror run -c imageset.yaml file://media",
				"bindery mirror run -c imageset.yaml --from media docker://registry.example.com/olm --dry-run -o json"),
		Flags: flags(imageSetFlags(), mirrorRunFlags(), mirrorCopyFlags(), []cli.Flag{mirrorShardFlag()},
			mirrorMediumFlags(),
			filterPolicyFlags(), mirrorCatalogFlags(), answerFlags(), signFlags(), imageFlags()),
		Action: exactly(1, p.mirrorRun),
	}
}

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
			EnvVars: env("dry-run")},
		&cli.StringFlag{Name: "account", Usage: "write the account of the run as JSON to `FILE`"},
	}
}

// mirrorCopyFlags say how images are copied.
func mirrorCopyFlags() []cli.Flag {
	const group = "copying"
	return []cli.Flag{
		&cli.StringFlag{Name: "on-missing", Value: string(mirror.SkipBundle), Category: group,
			Usage: "what becomes of a catalog that names images which cannot be had (skip-bundle|fail)"},
		&cli.StringSliceFlag{Name: "with", Value: cli.NewStringSlice("signatures", "referrers"), Category: group,
			DefaultText: "signatures,referrers", Usage: "copy `KINDS` of attachments (signatures|referrers|none)"},
		&cli.BoolFlag{Name: "recheck", Category: group,
			Usage: "look for new signatures of images that were mirrored before"},
		&cli.StringFlag{Name: "sparse", Value: string(referrers.SparseKeep), Category: group,
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
		inCategory(jobsFlag(), "work"),
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

// mirrorCatalogFlags say how catalogs are filtered and rebuilt, and how clusters are told.
func mirrorCatalogFlags() []cli.Flag {
	const group = "catalogs"
	return []cli.Flag{
		&cli.StringFlag{Name: "catalog-base", Value: string(mirror.KeepBase), Category: group,
			Usage: "rebuild catalogs on the layers of their source, with its server, or on this program's " +
				"(keep|replace)"},
		&cli.StringFlag{Name: "server", Category: group, DefaultText: "that of the source",
			Usage: "server of the catalogs: static program `FILE`, \"base\", \"embedded\" or \"none\""},
		serveCacheFlag(group), maxLayersFlag(group),
		&cli.StringFlag{Name: "compression", Value: "gzip", Usage: "layer compression `CODEC` (gzip|zstd|auto)",
			Category: group},
		&cli.StringFlag{Name: "idms-scope", Value: "namespace", Category: "cluster resources",
			Usage: "mirror sets name namespaces or repositories (namespace|repository)"},
		&cli.BoolFlag{Name: "pin-catalogs", Category: "cluster resources", Usage: "name catalogs by digest"},
		&cli.BoolFlag{Name: "icsp", Category: "cluster resources",
			Usage: "also write an ImageContentSourcePolicy, for clusters before 4.13"},
	}
}

// mirrorArgs is the direction that the arguments of a run ask for.
type mirrorArgs struct {
	mode               mirror.Mode
	target             imageset.Target
	workspace, archive string
	// parts has the archives of shards, for publishing into an archive.
	parts string
}

const fileScheme = "file://"

// readMirrorArgs reads DESTINATION, --from and --workspace. Directories may be written with file:// or without.
func readMirrorArgs(c *cli.Context) (a mirrorArgs, err error) {
	dest := c.Args().First()
	from := strings.TrimPrefix(c.String("from"), fileScheme)
	a.workspace = strings.TrimPrefix(c.String("workspace"), fileScheme)
	if dir, ok := strings.CutPrefix(dest, fileScheme); ok {
		if a.parts = from; c.Command.Name == "publish" && from == "" {
			return a, cmdline.Usagef("--from DIR is needed, with the archives of the shards: the destination is %s",
				dest)
		} else if c.Command.Name != "publish" && from != "" {
			return a, cmdline.Usagef("--from is for copying from an archive to a registry: the destination is %s", dest)
		}
		a.mode, a.archive = mirror.ToDisk, dir
		if a.workspace == "" {
			a.workspace = dir
		}
		if dir == "" {
			return a, cmdline.Usagef("the destination %s names no directory", dest)
		}
		return a, nil
	}
	if !strings.HasPrefix(dest, "docker://") {
		return a, cmdline.Usagef("invalid destination %q, expected docker://REGISTRY[/PATH] or file://DIR", dest)
	}
	if a.target, err = imageset.ParseTarget(dest); err != nil {
		return a, usage(err)
	}
	a.target.MaxNestedPaths = c.Int("max-nested-paths")
	switch a.mode = mirror.ToMirror; {
	case from != "":
		a.mode, a.archive = mirror.FromDisk, from
		if a.workspace == "" {
			a.workspace = from
		}
	case a.workspace == "":
		return a,
			cmdline.Usagef("--workspace DIR is needed for copying from registries to a registry, and --from DIR " +
				"for copying from an archive")
	}
	return a, nil
}

// usage is a usage error, in place of the class that its text begins with.
func usage(err error) error {
	if rest, ok := strings.CutPrefix(err.Error(), fault.ErrInvalid.Error()+": "); ok {
		return cmdline.Usagef("%s", rest)
	}
	return &cmdline.Error{Class: cmdline.ClassUsage, Err: err}
}

func (p *program) mirrorRun(c *cli.Context) error {
	asJSON, err := checkAnswer(c)
	if err != nil {
		return err
	}
	a, err := readMirrorArgs(c)
	if err != nil {
		return err
	}
	return p.withMirror(c, a, func(o mirror.Options) error {
		if err := p.mediumOptions(c, &o); err != nil {
			return err
		}
		if o.Shard, err = readShard(c); err != nil {
			return err
		}
		if err := checkDivided(c, o); err != nil {
			return err
		}
		account, err := p.runMirror(c.Context, o)
		return p.reportMirror(c, o, account, asJSON, err)
	})
}

// checkDivided refuses what the archives of shards cannot be: they are one medium, and each can be written again.
func checkDivided(c *cli.Context, o mirror.Options) error {
	if o.Mode != mirror.ToDisk || o.Shard.Count == 0 && !o.PublishOnly {
		return nil
	}
	if o.Medium.Form == medium.OCMirror {
		return cmdline.Usagef("oc-mirror reads no archives of several runs: --shard is for --archive-format oci")
	}
	if c.IsSet("since") {
		return cmdline.Usagef(
			"archives of shards carry all but what --against names: --since is for those of whole runs")
	}
	return nil
}

// withMirror prepares the options of a run, and calls run with them.
func (p *program) withMirror(c *cli.Context, a mirrorArgs, run func(mirror.Options) error) (err error) {
	o := mirror.Options{Mode: a.mode, Target: a.target, Archive: a.archive, Parts: a.parts, Config: c.String("config"),
		OnMissing: mirror.OnMissing(c.String("on-missing")), Base: mirror.Base(c.String("catalog-base")),
		PruneBlocked: c.Bool("prune-blocked"), Recheck: c.Bool("recheck"), Jobs: c.Int("parallel-images"),
		Layers: c.Int("parallel-layers"), Timeout: c.Duration("image-timeout"), DryRun: c.Bool("dry-run"),
		Now: time.Now().UTC().Truncate(time.Second), Log: p.log}
	if o.Now, err = p.mirrorTime(o.Now); err != nil {
		return err
	}
	if err := p.checkMirrorFlags(c, &o); err != nil {
		return err
	}
	if o.Set, err = p.imageSet(c, imageset.Image); err != nil {
		return err
	}
	if o.Replace, err = catalogSources(c, o.Set); err != nil {
		return err
	}
	throttle, err := mirrorThrottle(c)
	if err != nil {
		return err
	}
	if err := p.mirrorClients(c, &o, registryOptions(c), registryOptions(c), throttle); err != nil {
		return err
	}
	if err := p.mirrorSigning(c, &o); err != nil {
		return err
	}
	if o.Workspace, err = mirror.OpenWorkspace(a.workspace); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Workspace.Close()) }()
	if err := p.mirrorRemote(c, &o, registryOptions(c), throttle); err != nil {
		return err
	}
	return run(o)
}

// mirrorTime is the time in the files of a run: SOURCE_DATE_EPOCH if it is set.
func (p *program) mirrorTime(now time.Time) (time.Time, error) {
	at, err := sourceDate()
	if err != nil || at.IsZero() {
		return now, err
	}
	return at, nil
}

// checkMirrorFlags reads the flags with few values.
func (p *program) checkMirrorFlags(c *cli.Context, o *mirror.Options) (err error) {
	if o.OnMissing != mirror.SkipBundle && o.OnMissing != mirror.FailMissing {
		return cmdline.Usagef("invalid --on-missing value %q, expected (skip-bundle|fail)", o.OnMissing)
	}
	if o.Base != mirror.KeepBase && o.Base != mirror.ReplaceBase {
		return cmdline.Usagef("invalid --catalog-base value %q, expected (keep|replace)", o.Base)
	}
	if o.With, err = attachmentKinds(c.StringSlice("with")); err != nil {
		return err
	}
	o.Sparse = referrers.Sparse(c.String("sparse"))
	if !slices.Contains([]referrers.Sparse{referrers.SparseKeep, referrers.SparseRefuse, referrers.SparseTrim},
		o.Sparse) {
		return cmdline.Usagef("invalid --sparse value %q, expected (keep|error|trim)", o.Sparse)
	}
	if o.Jobs < 1 || o.Jobs > 64 || o.Layers < 1 || o.Layers > 64 {
		return cmdline.Usagef("--parallel-images and --parallel-layers are numbers from 1 to 64")
	}
	switch server := c.String("server"); server {
	case "", "base", "none", build.ServerEmbedded:
	default:
		if _, err := os.Stat(server); err != nil { // before all images are copied
			return &cmdline.Error{Class: cmdline.ClassLocal, Object: server, Err: fmt.Errorf("--server: %w", err)}
		}
	}
	if n := c.Int("max-nested-paths"); n < 0 {
		return cmdline.Usagef("invalid --max-nested-paths value %d, expected a positive number", n)
	}
	if o.Filter, err = p.filterPolicy(c); err != nil {
		return err
	}
	o.Compat = o.Filter.Compat
	return readResourceFlags(c, &o.Resources)
}

// mirrorThrottle reads --per-host and --max-bandwidth.
func mirrorThrottle(c *cli.Context) (*images.Throttle, error) {
	perHost, bandwidth := c.Int("per-host"), int64(0)
	if perHost < 0 {
		return nil, cmdline.Usagef("invalid --per-host value %d, expected a positive number", perHost)
	}
	if text := c.String("max-bandwidth"); text != "" {
		n, err := cmdline.ParseSize(text)
		if err != nil || n <= 0 {
			return nil, cmdline.Usagef("invalid --max-bandwidth value %q, expected a size such as 20MiB", text)
		}
		bandwidth = n
	}
	if perHost == 0 && bandwidth == 0 {
		return nil, nil
	}
	return images.NewThrottle(perHost, bandwidth), nil
}

// mirrorClients creates the clients that read images and catalogs, and how catalogs are rebuilt.
func (p *program) mirrorClients(c *cli.Context, o *mirror.Options, from, to images.Registry,
	throttle *images.Throttle) (err error) {
	spec, err := p.mirrorSpec(c, o.Base)
	if err != nil {
		return err
	}
	work, err := images.NewWorkspace(c.Context, nil, "")
	if err != nil {
		return err
	}
	p.atEnd = append(p.atEnd, func(bool) error { return work.Close() })
	spec.Build.Dir = work.Dir()
	o.Spec = *spec
	if o.Render, err = p.bundleOptions(c); err != nil {
		return err
	}
	o.Render.Opened = nil // the run says which catalogs it reads
	// Every image is read once: a cache would only be a second copy of all of them.
	client, err := p.mirrorSource(c, from, throttle)
	if err != nil {
		return err
	}
	p.atEnd = append(p.atEnd, func(bool) error { return client.Close() })
	o.Images = client
	return nil
}

// mirrorSpec is how catalogs are rebuilt. On the base of their source they have no serve cache unless one is asked for:
// its server reads its own formats only.
func (p *program) mirrorSpec(c *cli.Context, base mirror.Base) (*indeximage.Spec, error) {
	s := &indeximage.Spec{Server: c.String("server"), Embedded: &p.embedded, Registry: registryOptions(c),
		Program: version.Program(), Log: p.log}
	s.Build = build.Options{MaxLayers: c.Int("max-layers"), Jobs: c.Int("jobs"),
		Warn: func(text string) { p.log.Warn(text) }}
	var err error
	if s.Build.Compression = build.CompressionAuto; c.String("compression") != string(build.CompressionAuto) {
		if s.Build.Compression, err = layers.ParseCompression(c.String("compression")); err != nil {
			return nil, cmdline.Usagef("invalid --compression value %q, expected (gzip|zstd|auto)",
				c.String("compression"))
		}
	}
	if s.Build.Created, err = sourceDate(); err != nil {
		return nil, err
	}
	if c.IsSet("cache") || base != mirror.KeepBase {
		if err := p.setCaches(c, &s.Build); err != nil {
			return nil, err
		}
	}
	if s.Build.Cache, err = p.known(c); err != nil {
		return nil, err
	}
	s.Images, err = p.client(c)
	return s, err
}

// mirrorRemote creates the client that writes to the target.
func (p *program) mirrorRemote(c *cli.Context, o *mirror.Options, to images.Registry, throttle *images.Throttle) error {
	if o.Mode == mirror.ToDisk {
		return nil
	}
	uploads, err := images.NewUploadStore(filepath.Join(o.Workspace.Dir(), ".uploads"))
	if err != nil {
		return err
	}
	o.Remote, err = p.newRemote(c, to, throttle, uploads)
	return err
}

// newRemote returns a client for repositories at a mirror, which is closed when the command ends.
func (p *program) newRemote(c *cli.Context, at images.Registry, throttle *images.Throttle,
	uploads images.Uploads) (*images.Remote, error) {
	remote, err := images.NewRemote(c.Context, images.RemoteOptions{Registry: at, Retries: c.Int("retries"),
		Throttle: throttle, Uploads: uploads, Events: p.warnEvent})
	if err != nil {
		return nil, err
	}
	p.atEnd = append(p.atEnd, func(bool) error { return remote.Close() })
	return remote, nil
}

// mirrorSigning reads the flags about signing: rebuilt catalogs are signed.
func (p *program) mirrorSigning(c *cli.Context, o *mirror.Options) error {
	t := target{}
	if o.Mode == mirror.ToDisk {
		// Its name at a registry is not known yet: signatures for policies need --sign-identity.
		t.destinations = []images.Destination{{Transport: images.OCIArchive, Path: o.Archive}}
	}
	if err := p.prepareSigning(c, t); err != nil {
		return err
	}
	o.Sign = p.signing.attachments()
	return nil
}

// mediumOptions reads [mirrorMediumFlags].
func (p *program) mediumOptions(c *cli.Context, o *mirror.Options) error {
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
		if o.Against, o.AgainstDigest, err = readInventory(file); err != nil {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: file,
				Err:  fmt.Errorf("--against %s: %w", file, err),
				Hint: "\"mirror inventory\" writes the file"}
		}
	}
	return nil
}

// runMirror runs with progress on a terminal.
func (p *program) runMirror(ctx context.Context, o mirror.Options) (*mirror.Account, error) {
	bar := cmdline.NewTally(p.stderr, p.bars)
	defer bar.Close()
	last := time.Now()
	o.Events = func(e mirror.Event) {
		bar.Set(cmdline.TallyState{Done: e.Images, All: e.AllImages, Bytes: e.Bytes, AllBytes: e.AllBytes})
		if e.Image != "" && e.Err == nil {
			p.log.Debug("image", "source", e.Image, "status", e.Status)
		}
		if !p.bars && time.Since(last) > 30*time.Second {
			last = time.Now()
			p.log.Info(fmt.Sprintf("%d of %s, %s", e.Images, count(e.AllImages, "image"), cmdline.FormatSize(e.Bytes)))
		}
	}
	account, err := mirror.Run(ctx, o)
	var lack *mirror.LackError
	if errors.As(err, &lack) {
		err = &cmdline.Error{Class: cmdline.ClassConflict, Object: o.Archive, Err: err,
			Hint: "copy the earlier archives first, or write one against an inventory of this registry (mirror " +
				"inventory), " +
				"or a whole one with --all"}
	}
	return account, err
}

// reportMirror prints what a run has done, and returns its exit status.
func (p *program) reportMirror(c *cli.Context, o mirror.Options, account *mirror.Account, asJSON bool,
	err error) error {
	var incomplete *mirror.IncompleteError
	if errors.As(err, &incomplete) {
		err = &cmdline.ExitStatus{Status: 4, Err: &cmdline.Error{Class: cmdline.Classify(err), Err: err,
			Hint: missingHint(o)}}
		account.Exit = 4
	} else if err != nil && account != nil {
		var known *cmdline.Error
		if account.Totals.Copied > 0 && !errors.As(err, &known) {
			err = &cmdline.Error{Class: cmdline.Classify(err), Err: err,
				Hint: "when that is mended, the same command goes on where this one ended"}
		}
		account.Exit = 1
	}
	if account == nil {
		return err
	}
	if file := c.String("account"); file != "" {
		if failed := p.writeAccount("account", file, account); failed != nil {
			return errors.Join(err, failed)
		}
	}
	if asJSON {
		return errors.Join(p.printJSON(account), err)
	}
	if err != nil && incomplete == nil {
		return err
	}
	var b strings.Builder
	for _, catalog := range account.Catalogs {
		if catalog.Published {
			fmt.Fprintf(&b, "%s@%s\n", strings.TrimPrefix(catalog.Destination, "docker://"), catalog.DestinationDigest)
		}
	}
	if account.DryRun {
		for _, r := range account.Repositories {
			fmt.Fprintf(&b, "%s\t%s\n", r.Name, cmdline.FormatSize(r.Bytes))
		}
	}
	_, failed := p.stdout.Write([]byte(printable.Text(b.String())))
	for _, line := range mirrorSummary(account, o) {
		p.log.Info(line)
	}
	return errors.Join(failed, err)
}
