package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/mirror/releases/signed"
)

func mirrorRunCommand(p *option.Session) *cli.Command {
	o := &runOptions{}
	return &cli.Command{
		Name:      "run",
		Usage:     "copy releases and operators to a registry or archive, or from an archive to a registry",
		ArgsUsage: "DESTINATION",
		Description: `Copies what an image set (--config) asks for: releases with their components, filtered
catalogs, the bundles and related images that they name, the images of Helm charts, additional images, and the
signatures and referrers of all of them. The destination decides:

  docker://REGISTRY[/PATH]             from registries to a registry; --workspace is needed
  file://DIR                           from registries to an archive in DIR
  docker://REGISTRY[/PATH] --from DIR  from the archive in DIR, or those in its directories, to a registry

Images come first: a release is published when all its components are there, after its signature was verified
(--release-key), and a catalog when all that it names is there. A bundle with an
image that is not available is taken out of its catalog (--on-missing), and the exit status is 4. What the
destination has is not sent again, so that an interrupted run is repeated to go on. DIR/working-dir of the
workspace, the archive or --from gets the files for clusters and the account for the next run.` +
			program.Examples("bindery mirror run -c imageset.yaml --workspace mirror docker://registry.example.com/olm",
				"bindery mirror run -c imageset.yaml file://media",
				"bindery mirror run -c imageset.yaml --from media docker://registry.example.com/olm --dry-run -o json"),
		Flags: program.Flags(o.flags(), o.fileFlags(), o.copyFlags(), []cli.Flag{option.MirrorShardFlag(&o.shard)},
			o.ReleaseFlags(), o.ChartFlags(), o.mediumFlags(), o.filterFlags(), o.catalogFlags(), o.Answer.Flags(), o.Signing.Flags(), o.EndsFlags(), o.Images.Flags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args[0]) })),
	}
}

const (
	FileScheme   = "file://"
	dockerScheme = "docker://"
)

// Direction reads DESTINATION, --from and --workspace. Directories may be written with file:// or without. To publish into
// an archive, --from has the archives of shards.
func (o *SetOptions) Direction(dest string) error {
	r, from := &o.Request, strings.TrimPrefix(o.From, FileScheme)
	if dir, ok := strings.CutPrefix(dest, FileScheme); ok {
		if r.PublishOnly && from == "" {
			return cmdline.Usagef("--from DIR is needed, with the archives of the shards: the destination is %s", dest)
		} else if !r.PublishOnly && from != "" {
			return cmdline.Usagef("--from is for copying from an archive to a registry: the destination is %s", dest)
		}
		if r.Mode, r.Archive, r.Parts = mirror.ToDisk, dir, from; dir == "" {
			return cmdline.Usagef("the destination %s names no directory", dest)
		}
		return nil
	}
	if err := o.setTarget(dest, true); err != nil {
		return err
	}
	switch r.Mode = mirror.ToMirror; {
	case from != "":
		r.Mode, r.Archive = mirror.FromDisk, from
		if _, err := os.ReadDir(from); err != nil {
			return &cmdline.Error{Class: cmdline.ClassLocal, Object: from, Err: fmt.Errorf("--from: %w", err)}
		}
	case o.workspace() == "":
		return cmdline.Usagef("--workspace DIR is needed for copying from registries to a registry, and --from DIR " +
			"for copying from an archive")
	}
	return nil
}

// workspace is the directory for files of runs: that of the archive unless --workspace names one.
func (o *SetOptions) workspace() string {
	return cmp.Or(strings.TrimPrefix(o.Workspace, FileScheme), o.Request.Archive)
}

func (o *runOptions) run(ctx context.Context, p *option.Session, dest string) error {
	return o.prepare(ctx, p, dest, func(with mirror.Options, format program.Format) error {
		account, err := RunMirror(ctx, p, with)
		return o.report(p, with, account, format, err)
	})
}

// trustedRoot takes the trusted root out of an archive if --trusted-root is its digest.
func trustedRoot(ctx context.Context, o *option.TrustedRoot, dir string) (err error) {
	wanted := digest.Digest(o.File)
	if wanted.Validate() != nil {
		return nil
	}
	r, err := medium.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, c := range append(r.Parts(), r.Contents()) {
		if c != nil && digest.FromString(c.TrustedRoot) == wanted {
			o.Text = []byte(c.TrustedRoot)
			return nil
		}
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: dir, Hint: "\"mirror run --include-trusted-root\" puts one there, " +
		"and says its digest", Err: fmt.Errorf("the archive in %s has no trusted root with the digest %s", dir, wanted)}
}

// prepare prepares the options of a run, and calls run with them.
func (o *runOptions) prepare(ctx context.Context, p *option.Session, dest string, run func(mirror.Options, program.Format) error) (err error) {
	format, err := o.Format()
	if err != nil {
		return err
	}
	if err := o.Direction(dest); err != nil {
		return err
	}
	with := &o.Request
	if with.Now, err = Time(time.Now().UTC().Truncate(time.Second)); err != nil {
		return err
	}
	if err := o.readValues(p, with); err != nil {
		return err
	}
	if err := o.readMedium(ctx, p, with); err != nil {
		return err
	}
	if err := with.Check(); err != nil {
		return err
	}
	if *with, err = o.Prepare(ctx, p, imageset.Image, &o.Registry); err != nil {
		return err
	}
	throttle, err := o.throttle()
	if err != nil {
		return err
	}
	if with.Mode == mirror.FromDisk {
		if err := trustedRoot(ctx, &o.TrustedRoot, with.Archive); err != nil {
			return err
		}
	}
	if err := o.createClients(ctx, p, with, throttle); err != nil {
		return err
	}
	if err := o.prepareSigning(ctx, p, with); err != nil {
		return err
	}
	if with.Workspace, err = o.OpenWorkspace(""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.Workspace.Close()) }()
	if err := o.createRemote(ctx, p, with, throttle); err != nil {
		return err
	}
	return run(*with, format)
}

// OpenWorkspace opens the workspace of a run. That of an archive may be on a medium that cannot be written, or have what
// a workspace must not have. hint, unless empty, is the advice in this case.
func (o *SetOptions) OpenWorkspace(hint string) (*mirror.Workspace, error) {
	w, err := mirror.OpenWorkspace(o.workspace())
	if err == nil || o.Request.Mode != mirror.FromDisk || o.Workspace != "" || errors.Is(err, mirror.ErrBusy) {
		return w, err
	}
	return nil, &cmdline.Error{Class: cmdline.Classify(err), Object: o.workspace(), Err: err,
		Hint: cmp.Or(hint, "--workspace DIR keeps the files of runs in DIR, and not beside the archive")}
}

// Time is the time in the files of a run: SOURCE_DATE_EPOCH if it is set.
func Time(now time.Time) (time.Time, error) {
	at, err := program.SourceDate()
	if err != nil || at.IsZero() {
		return now, err
	}
	return at, nil
}

// RunMirror runs with progress on a terminal.
func RunMirror(ctx context.Context, p *option.Session, o mirror.Options) (*mirror.Account, error) {
	progress := p.Task()
	defer progress.Close()
	o.Events = func(e mirror.Event) {
		progress.Set(cmdline.State{What: "mirroring", Done: e.Images, All: e.AllImages, Units: "images", Bytes: e.Bytes,
			AllBytes: e.AllBytes, Counting: e.Counting})
		if e.Image != "" && e.Err == nil {
			p.Log.Debug("image", "source", e.Image, "status", e.Status)
		}
	}
	if o.Set != nil && len(o.Set.AdditionalImages) > manyImages && os.Getenv("GOGC") == "" {
		// What is kept of so many images lives as long as the run, and a heap of twice its size would exceed the limits.
		// That holds until the program ends, as its account of them is large too.
		debug.SetGCPercent(manyImagesGC)
		if debug.SetMemoryLimit(-1) > manyImagesMemory && len(o.Set.Operators)+len(o.Set.Platform.Channels) == 0 {
			debug.SetMemoryLimit(manyImagesMemory) // what is free goes back to the system at once
		}
	}
	account, err := o.Run(ctx)
	return account, archiveError(o, err)
}

const (
	// manyImages is from how many images on that an image set names the heap grows by manyImagesGC percent only.
	manyImages   = 10_000
	manyImagesGC = 10
	// manyImagesMemory is about what the 100,000 images take that an image set can have.
	manyImagesMemory = 150 << 20
)

const damagedHint = "the archive is damaged, or not whole: copy all its files mirror_*.tar here again, and none of another one"

// signatureHint is the advice on a release without a good signature; empty for other errors.
func signatureHint(err error) string {
	var unsigned *signed.Error
	if !errors.As(err, &unsigned) {
		return ""
	}
	return "nothing is copied of a release without a good signature; --release-key FILE names other keys than the vendor's, and " +
		"--release-signature-url URL another place of signatures"
}

// archiveError gives advice on errors of releases, and of the archive that a run reads.
func archiveError(o mirror.Options, err error) error {
	var lack *mirror.LackError
	var incomplete *mirror.IncompleteError
	var answer *registries.StatusError
	var kept *medium.KeptError
	e := &cmdline.Error{Class: cmdline.Classify(err), Object: o.Archive, Err: err}
	switch {
	case !errors.As(err, &incomplete) && signatureHint(err) != "":
		e.Object, e.Hint = "", signatureHint(err)
	case errors.As(err, &kept):
		e.Hint = "what it has may exist nowhere else: mend it, or move its files mirror_*.tar elsewhere and repeat the " +
			"run with --all"
	case o.Mode != mirror.FromDisk || errors.As(err, &incomplete) || errors.As(err, &answer):
		return err
	case errors.As(err, &lack):
		e.Class, e.Hint = cmdline.ClassConflict, "copy the earlier archives first, or write one against an inventory "+
			"of this registry (mirror inventory), or a whole one with --all"
	case errors.Is(err, fault.ErrIntegrity):
		e.Hint = damagedHint
	case errors.Is(err, fs.ErrNotExist):
		e.Hint = "--from names the directory with the files mirror_*.tar, which were written for the same image set"
	default:
		return err
	}
	return e
}

// WarnUndelivered says what was found to lack before an error has ended the run.
func WarnUndelivered(p *option.Session, account *mirror.Account, err error) {
	var collect *mirror.CollectError
	if errors.As(err, &collect) {
		return // it names everything
	}
	for line := range Undelivered(account) {
		p.Log.Warn(line)
	}
}

// report prints what a run has done, and returns its exit status.
func (o *runOptions) report(p *option.Session, with mirror.Options, account *mirror.Account, format program.Format,
	err error) error {
	var incomplete *mirror.IncompleteError
	if errors.As(err, &incomplete) {
		err = incompleteStatus(p, with, incomplete, account)
		account.Exit = 4
	} else if err != nil && account != nil {
		WarnUndelivered(p, account, err)
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
	if file := o.account; file != "" {
		if failed := p.WriteAccount("account", file, account); failed != nil {
			return errors.Join(err, failed)
		}
	}
	if format.IsDocument() {
		return errors.Join(p.PrintValue(format, account), err)
	}
	if err != nil && incomplete == nil {
		return err
	}
	var b strings.Builder
	for _, r := range account.Releases {
		if r.Published {
			fmt.Fprintf(&b, "%s@%s\n", strings.TrimPrefix(r.Destination, "docker://"), r.Digest)
		}
	}
	if g := account.Graph; g != nil && g.Published {
		fmt.Fprintf(&b, "%s@%s\n", strings.TrimPrefix(g.Destination, "docker://"), g.Digest)
	}
	for _, catalog := range account.Catalogs {
		if catalog.Published {
			fmt.Fprintf(&b, "%s@%s\n", strings.TrimPrefix(catalog.Destination, "docker://"), catalog.DestinationDigest)
		}
	}
	b.WriteString(repositoriesText(account.Repositories))
	_, failed := p.Stdout.Write([]byte(printable.Text(b.String())))
	for _, line := range mirrorSummary(account, with) {
		p.Log.Info(line)
	}
	return errors.Join(failed, err)
}
