package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

func (p *program) mirrorRunCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "copy operators to a registry or an archive, or from an archive to a registry",
		ArgsUsage: "DESTINATION",
		Description: `Copies what an image set (--config) asks for: filtered catalogs, the bundles and related
images that they name, additional images, and the signatures and referrers of all of them. The destination
decides:

  docker://REGISTRY[/PATH]             from registries to a registry; --workspace is needed
  file://DIR                           from registries to an archive in DIR
  docker://REGISTRY[/PATH] --from DIR  from the archive in DIR, or those in its directories, to a registry

Images come first and catalogs last: a catalog is published when all that it names is there. A bundle with an
image that is not available is taken out of its catalog (--on-missing), and the exit status is 4. What the
destination has is not sent again, so that an interrupted run is repeated to go on. DIR/working-dir of the
workspace, the archive or --from gets the files for clusters and the account for the next run.` +
			examples("bindery mirror run -c imageset.yaml --workspace mirror docker://registry.example.com/olm",
				"bindery mirror run -c imageset.yaml file://media",
				"bindery mirror run -c imageset.yaml --from media docker://registry.example.com/olm --dry-run -o json"),
		Flags: flags(imageSetFlags(), mirrorRunFlags(), mirrorCopyFlags(), []cli.Flag{mirrorShardFlag()},
			mirrorMediumFlags(), filterPolicyFlags(), mirrorCatalogFlags(), answerFlags(), signFlags(), imageFlags()),
		Action: exactly(1, p.mirrorRun),
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

const (
	fileScheme   = "file://"
	dockerScheme = "docker://"
)

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
	if a.target, err = mirrorTarget(c, dest, true); err != nil {
		return a, err
	}
	switch a.mode = mirror.ToMirror; {
	case from != "":
		a.mode, a.archive = mirror.FromDisk, from
		if _, err := os.ReadDir(from); err != nil {
			return a, &cmdline.Error{Class: cmdline.ClassLocal, Object: from, Err: fmt.Errorf("--from: %w", err)}
		}
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
	if o.Workspace, err = openWorkspace(c, a); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Workspace.Close()) }()
	if err := p.mirrorRemote(c, &o, registryOptions(c), throttle); err != nil {
		return err
	}
	return run(o)
}

// openWorkspace opens the workspace of a run. That of an archive may be on a medium that cannot be written, or have what
// a workspace must not have.
func openWorkspace(c *cli.Context, a mirrorArgs) (*mirror.Workspace, error) {
	w, err := mirror.OpenWorkspace(a.workspace)
	if err == nil || a.mode != mirror.FromDisk || c.String("workspace") != "" || errors.Is(err, mirror.ErrBusy) {
		return w, err
	}
	e := &cmdline.Error{Class: cmdline.Classify(err), Object: a.workspace, Err: err,
		Hint: "--workspace DIR keeps the files of runs in DIR, and not beside the archive"}
	if c.Command.Name == "oc-mirror-run" { // which has the flag, and refuses it beside --from
		e.Hint = "\"bindery mirror run --from\" takes --workspace DIR, which keeps the files of runs in DIR, and not " +
			"beside the archive"
	}
	return nil, e
}

// mirrorTime is the time in the files of a run: SOURCE_DATE_EPOCH if it is set.
func (p *program) mirrorTime(now time.Time) (time.Time, error) {
	at, err := sourceDate()
	if err != nil || at.IsZero() {
		return now, err
	}
	return at, nil
}

// runMirror runs with progress on a terminal.
func (p *program) runMirror(ctx context.Context, o mirror.Options) (*mirror.Account, error) {
	progress := p.task()
	defer progress.Close()
	o.Events = func(e mirror.Event) {
		progress.Set(cmdline.State{What: "mirroring", Done: e.Images, All: e.AllImages, Units: "images", Bytes: e.Bytes,
			AllBytes: e.AllBytes, Counting: e.Counting})
		if e.Image != "" && e.Err == nil {
			p.log.Debug("image", "source", e.Image, "status", e.Status)
		}
	}
	account, err := mirror.Run(ctx, o)
	return account, archiveError(o, err)
}

const damagedHint = "the archive is damaged, or not whole: copy all its files mirror_*.tar here again, and none of another one"

// archiveError gives advice on errors of the archive that a run reads.
func archiveError(o mirror.Options, err error) error {
	var lack *mirror.LackError
	var incomplete *mirror.IncompleteError
	var answer *registries.StatusError
	var kept *medium.KeptError
	e := &cmdline.Error{Class: cmdline.Classify(err), Object: o.Archive, Err: err}
	switch {
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

// warnUndelivered says what was found to lack before an error has ended the run.
func (p *program) warnUndelivered(account *mirror.Account, err error) {
	var collect *mirror.CollectError
	if errors.As(err, &collect) {
		return // it names everything
	}
	for _, line := range undelivered(account) {
		p.log.Warn(line)
	}
}

// reportMirror prints what a run has done, and returns its exit status.
func (p *program) reportMirror(c *cli.Context, o mirror.Options, account *mirror.Account, asJSON bool,
	err error) error {
	var incomplete *mirror.IncompleteError
	if errors.As(err, &incomplete) {
		err = p.incompleteStatus(o, incomplete, account)
		account.Exit = 4
	} else if err != nil && account != nil {
		p.warnUndelivered(account, err)
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
	b.WriteString(repositoriesText(account.Repositories))
	_, failed := p.stdout.Write([]byte(printable.Text(b.String())))
	for _, line := range mirrorSummary(account, o) {
		p.log.Info(line)
	}
	return errors.Join(failed, err)
}
