package mirror

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
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

func mirrorRunCommand(p *option.Session) *cli.Command {
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
			program.Examples("bindery mirror run -c imageset.yaml --workspace mirror docker://registry.example.com/olm",
				"bindery mirror run -c imageset.yaml file://media",
				"bindery mirror run -c imageset.yaml --from media docker://registry.example.com/olm --dry-run -o json"),
		Flags: program.Flags(imageSetFlags(), mirrorRunFlags(), mirrorCopyFlags(), []cli.Flag{option.MirrorShardFlag()},
			mirrorMediumFlags(), filterPolicyFlags(), mirrorCatalogFlags(), option.AnswerFlags(), option.SignFlags(), option.ImageFlags()),
		Action: program.Exactly(1, func(c *cli.Context) error { return mirrorRun(p, c) }),
	}
}

// MirrorArgs is the direction that the arguments of a run ask for.
type MirrorArgs struct {
	Mode               mirror.Mode
	Target             imageset.Target
	workspace, Archive string
	// parts has the archives of shards, for publishing into an archive.
	parts string
}

const (
	FileScheme   = "file://"
	dockerScheme = "docker://"
)

// ReadMirrorArgs reads DESTINATION, --from and --workspace. Directories may be written with file:// or without.
func ReadMirrorArgs(c *cli.Context) (a MirrorArgs, err error) {
	dest := c.Args().First()
	from := strings.TrimPrefix(c.String("from"), FileScheme)
	a.workspace = strings.TrimPrefix(c.String("workspace"), FileScheme)
	if dir, ok := strings.CutPrefix(dest, FileScheme); ok {
		if a.parts = from; c.Command.Name == "publish" && from == "" {
			return a, cmdline.Usagef("--from DIR is needed, with the archives of the shards: the destination is %s",
				dest)
		} else if c.Command.Name != "publish" && from != "" {
			return a, cmdline.Usagef("--from is for copying from an archive to a registry: the destination is %s", dest)
		}
		a.Mode, a.Archive = mirror.ToDisk, dir
		if a.workspace == "" {
			a.workspace = dir
		}
		if dir == "" {
			return a, cmdline.Usagef("the destination %s names no directory", dest)
		}
		return a, nil
	}
	if a.Target, err = mirrorTarget(c, dest, true); err != nil {
		return a, err
	}
	switch a.Mode = mirror.ToMirror; {
	case from != "":
		a.Mode, a.Archive = mirror.FromDisk, from
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

func mirrorRun(p *option.Session, c *cli.Context) error {
	asJSON, err := option.CheckAnswer(c)
	if err != nil {
		return err
	}
	a, err := ReadMirrorArgs(c)
	if err != nil {
		return err
	}
	return withMirror(p, c, a, func(o mirror.Options) error {
		if err := mediumOptions(p, c, &o); err != nil {
			return err
		}
		if o.Shard, err = option.ReadShard(c.String("shard")); err != nil {
			return err
		}
		if err := checkDivided(c, o); err != nil {
			return err
		}
		account, err := RunMirror(p, c.Context, o)
		return reportMirror(p, c, o, account, asJSON, err)
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
func withMirror(p *option.Session, c *cli.Context, a MirrorArgs, run func(mirror.Options) error) (err error) {
	o := mirror.Options{Mode: a.Mode, Target: a.Target, Archive: a.Archive, Parts: a.parts, Config: c.String("config"),
		OnMissing: mirror.OnMissing(c.String("on-missing")), Base: mirror.Base(c.String("catalog-base")),
		PruneBlocked: c.Bool("prune-blocked"), Recheck: c.Bool("recheck"), Jobs: c.Int("parallel-images"),
		Layers: c.Int("parallel-layers"), Timeout: c.Duration("image-timeout"), DryRun: c.Bool("dry-run"),
		Now: time.Now().UTC().Truncate(time.Second), Log: p.Log}
	if o.Now, err = MirrorTime(p, o.Now); err != nil {
		return err
	}
	if err := checkMirrorFlags(p, c, &o); err != nil {
		return err
	}
	if o.Set, err = ImageSet(p, c, imageset.Image); err != nil {
		return err
	}
	if o.Replace, err = catalogSources(c, o.Set); err != nil {
		return err
	}
	throttle, err := mirrorThrottle(c)
	if err != nil {
		return err
	}
	if err := mirrorClients(p, c, &o, option.RegistryOptions(p, c), option.RegistryOptions(p, c), throttle); err != nil {
		return err
	}
	if err := mirrorSigning(p, c, &o); err != nil {
		return err
	}
	if o.Workspace, err = OpenWorkspace(c, a); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Workspace.Close()) }()
	if err := mirrorRemote(p, c, &o, option.RegistryOptions(p, c), throttle); err != nil {
		return err
	}
	return run(o)
}

// OpenWorkspace opens the workspace of a run. That of an archive may be on a medium that cannot be written, or have what
// a workspace must not have.
func OpenWorkspace(c *cli.Context, a MirrorArgs) (*mirror.Workspace, error) {
	w, err := mirror.OpenWorkspace(a.workspace)
	if err == nil || a.Mode != mirror.FromDisk || c.String("workspace") != "" || errors.Is(err, mirror.ErrBusy) {
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

// MirrorTime is the time in the files of a run: SOURCE_DATE_EPOCH if it is set.
func MirrorTime(p *option.Session, now time.Time) (time.Time, error) {
	at, err := program.SourceDate()
	if err != nil || at.IsZero() {
		return now, err
	}
	return at, nil
}

// RunMirror runs with progress on a terminal.
func RunMirror(p *option.Session, ctx context.Context, o mirror.Options) (*mirror.Account, error) {
	progress := p.Task()
	defer progress.Close()
	o.Events = func(e mirror.Event) {
		progress.Set(cmdline.State{What: "mirroring", Done: e.Images, All: e.AllImages, Units: "images", Bytes: e.Bytes,
			AllBytes: e.AllBytes, Counting: e.Counting})
		if e.Image != "" && e.Err == nil {
			p.Log.Debug("image", "source", e.Image, "status", e.Status)
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

// WarnUndelivered says what was found to lack before an error has ended the run.
func WarnUndelivered(p *option.Session, account *mirror.Account, err error) {
	var collect *mirror.CollectError
	if errors.As(err, &collect) {
		return // it names everything
	}
	for _, line := range Undelivered(account) {
		p.Log.Warn(line)
	}
}

// reportMirror prints what a run has done, and returns its exit status.
func reportMirror(p *option.Session, c *cli.Context, o mirror.Options, account *mirror.Account, asJSON bool,
	err error) error {
	var incomplete *mirror.IncompleteError
	if errors.As(err, &incomplete) {
		err = incompleteStatus(p, o, incomplete, account)
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
	if file := c.String("account"); file != "" {
		if failed := p.WriteAccount("account", file, account); failed != nil {
			return errors.Join(err, failed)
		}
	}
	if asJSON {
		return errors.Join(p.PrintJSON(account), err)
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
	_, failed := p.Stdout.Write([]byte(printable.Text(b.String())))
	for _, line := range mirrorSummary(account, o) {
		p.Log.Info(line)
	}
	return errors.Join(failed, err)
}
