package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// deleteOptions are the flags of "mirror delete".
type deleteOptions struct {
	SetOptions
	option.Images
	option.Answer
	with mirror.DeleteOptions // has the values that need no reading, but for those of Request
	list string
	yes  bool
	jobs int
}

func mirrorDeleteCommand(p *option.Session) *cli.Command {
	o := &deleteOptions{}
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete images of a mirror that nothing else needs: list them first, then delete",
		ArgsUsage: "MIRROR",
		Description: `In two steps. With --config, a DeleteImageSetConfiguration, the images that it names at
docker://REGISTRY[/PATH] are listed in --list, less those that others there need (keptItems has them with the
reason). With --list alone the images of the file are deleted, after another look: what has come to be needed
since is kept, and the exit status is 4. An image that is gone already is no error: the command can be
repeated.

Needed is what the record of the workspace and every catalog that the registry lists name, and what has
another tag. Without a record nothing is deleted until --without-record is given.

Registries delete by digest, and free the space by their own garbage collection. A catalog that still names
deleted bundles is to be mirrored again without them.` +
			program.Examples("bindery mirror delete -c delete.yaml --workspace mirror --list delete-images.yaml "+
				"docker://registry.example.com/olm",
				"bindery mirror delete --list delete-images.yaml --dry-run docker://registry.example.com/olm"),
		Flags: program.Flags(o.SetOptions.flags(), []cli.Flag{
			&cli.StringFlag{Name: "workspace", Destination: &o.Workspace, Usage: "`DIR` of earlier runs, which knows what else was mirrored (default " +
				"with --list: that of the list)"},
			&cli.BoolFlag{Name: "without-record", Destination: &o.with.WithoutRecord, Usage: "go on without a record of what was mirrored to the registry: " +
				"compare with the catalogs and tags there alone"},
			&cli.StringFlag{Name: "list", Destination: &o.list, Usage: "`FILE` with the images to delete"},
			&cli.StringFlag{Name: "shared", Destination: (*string)(&o.with.Shared), Value: string(mirror.KeepShared),
				Usage: "what becomes of images that other bundles and catalogs need (keep|delete)"},
			&cli.BoolFlag{Name: "delete-signatures", Destination: &o.with.Signatures, Usage: "list the signatures of the images, too"},
			&cli.BoolFlag{Name: "dry-run", Destination: &o.Request.DryRun, Usage: "print what would be done", EnvVars: program.Env("dry-run")},
			&cli.BoolFlag{Name: "yes", Destination: &o.yes, Aliases: []string{"y"}, Usage: "do not ask before deleting"},
			o.maxNestedPathsFlag(), option.JobsFlag(&o.jobs, "work"), o.CrossChannelFlag(),
		}, o.filterFlags(), o.Answer.Flags(), o.Images.Flags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args[0]) })),
	}
}

func (o *deleteOptions) run(ctx context.Context, p *option.Session, dest string) error {
	format, err := o.Format()
	if err != nil {
		return err
	}
	if err := o.setTarget(dest, false); err != nil {
		return err
	}
	if err := errors.Join(p.Filled("shared"), o.with.Check()); err != nil {
		return err
	}
	if o.Request.Config == "" && o.list == "" {
		return cmdline.Usagef("--config FILE lists images to delete, and --list FILE deletes those of a list")
	}
	// The catalogs of all who use the registry are read, for whatever platform they are.
	p.ReadPlatform, p.ReadAny = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, true
	if o.Request.Config != "" {
		list, absent, err := o.listDeletions(ctx, p)
		if err != nil {
			return err
		}
		if err := o.writeList(p, dest, list, format); err != nil || len(absent) == 0 {
			return err
		}
		return &cmdline.ExitStatus{Status: 4, Err: &cmdline.Error{Class: cmdline.ClassInput, Object: o.Request.Config,
			Err:  errors.New("the list is without what the catalogs do not have"),
			Hint: mendNames(o.Request.Config), List: slices.Values(absent)}}
	}
	list, err := mirror.ReadDeleteList(ctx, o.list)
	if errors.Is(err, fault.ErrInvalid) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: o.list, Err: err,
			Hint: "the list is the file that the step before wrote: a DeleteImageList"}
	}
	if err != nil {
		return err
	}
	if err := o.confirm(p, len(list.Items)); err != nil {
		return err
	}
	return o.deleteImages(ctx, p, list, format)
}

// bundles is how catalogs are read.
func (o *deleteOptions) bundles() *option.Bundles {
	return &option.Bundles{Images: o.Images, Jobs: o.jobs}
}

// withoutRecord says what to do about a record that is missing.
func withoutRecord(err error, list *mirror.DeleteList) error {
	if !errors.Is(err, mirror.ErrNoRecord) {
		return err
	}
	hint := "--workspace DIR names the directory of the runs that mirrored to it; with --without-record only the " +
		"catalogs and tags that the registry has are compared"
	if list != nil && list.Workspace != "" {
		hint = "the list was made with the workspace " + list.Workspace + "; " + hint
	}
	return &cmdline.Error{Class: cmdline.ClassUsage, Err: err, Hint: hint}
}

// KeptStatus is the result of a deletion that kept images which the list has.
func KeptStatus(d *mirror.Deletion) error {
	kept := 0
	for _, i := range d.Images {
		if i.Status == "kept" {
			kept++
		}
	}
	if kept == 0 {
		return nil
	}
	return &cmdline.ExitStatus{Status: 4, Err: fmt.Errorf("%s of the list not deleted, as others need them",
		program.Count(kept, "image"))}
}

// listDeletions lists what --config names.
func (o *deleteOptions) listDeletions(ctx context.Context, p *option.Session) (_ *mirror.DeleteList,
	absent []string, err error) {
	with := &o.with
	if with.Options, err = o.Prepare(ctx, p, imageset.Delete, &o.Registry); err != nil {
		return nil, nil, err
	}
	if with.Render, err = o.bundles().Options(ctx, p); err != nil {
		return nil, nil, err
	}
	if dir := o.workspace(); dir != "" {
		if with.Workspace, err = mirror.ReadWorkspace(dir); err != nil {
			return nil, nil, err
		}
		defer func() { err = errors.Join(err, with.Workspace.Close()) }()
	}
	if with.Remote, err = newRemote(ctx, p, &o.Registry, nil, nil); err != nil {
		return nil, nil, err
	}
	list, problems, err := with.ListDeletions(ctx)
	return list, NotThere(problems), withoutRecord(err, nil)
}

// NotThere lists the problems about names that catalogs do not have.
func NotThere(problems []mirror.Problem) (lines []string) {
	for _, one := range problems {
		if one.Level == filter.Failure {
			lines = append(lines, "not there: "+one.String())
		}
	}
	return lines
}

// writeList writes a list to --list, or prints it.
func (o *deleteOptions) writeList(p *option.Session, dest string, list *mirror.DeleteList, format program.Format) error {
	if format.IsDocument() {
		if err := p.PrintValue(format, list); err != nil {
			return err
		}
	}
	text, err := list.MarshalYAML()
	if err != nil {
		return err
	}
	file := o.list
	if file == "" || o.Request.DryRun {
		if format.IsDocument() {
			return nil
		}
		_, err := p.Stdout.Write([]byte(printable.Text(string(text))))
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := atomicfs.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	p.Log.Info(fmt.Sprintf("%s: %s to delete, %d kept", file, program.Count(len(list.Items), "image"), len(list.Kept)))
	if len(list.Items) > 0 {
		without := ""
		if o.with.WithoutRecord {
			without = " --without-record"
		}
		p.Log.Info(fmt.Sprintf("next: look at the list, and run: bindery mirror delete --list %s%s %s", file, without, dest))
	}
	return nil
}

// confirm asks on a terminal.
func (o *deleteOptions) confirm(p *option.Session, n int) error {
	in, ok := p.Stdin.(*os.File)
	if o.yes || o.Request.DryRun || !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	fmt.Fprintf(p.Stderr, "delete %s at %s? [y/N] ", program.Count(n, "image"), o.Request.Target)
	var answer string
	if _, err := fmt.Fscanln(p.Stdin, &answer); err != nil || !strings.EqualFold(answer, "y") {
		return errors.New("nothing is deleted")
	}
	return nil
}

func (o *deleteOptions) deleteImages(ctx context.Context, p *option.Session, list *mirror.DeleteList, format program.Format) (err error) {
	with, t := &o.with, o.Request.Target
	with.Log, with.DryRun = p.Log, o.Request.DryRun
	if !p.Given("shared") {
		with.Shared = ""
	}
	if dir := o.workspace(); dir != "" {
		if with.Workspace, err = mirror.OpenWorkspace(dir); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, with.Workspace.Close()) }()
	}
	if with.Render, err = o.bundles().Options(ctx, p); err != nil {
		return err
	}
	if with.Remote, err = newRemote(ctx, p, &o.Registry, nil, nil); err != nil {
		return err
	}
	progress := p.Progress()
	defer progress.Close()
	n, what := 0, "deleting"
	if with.DryRun {
		what = "looking"
	}
	with.Done = func(d mirror.Deleted) {
		n++
		progress.Set(cmdline.State{What: what, Done: n, All: len(list.Items), Units: "images"})
		p.Log.Debug("image", "reference", d.Reference, "status", d.Status)
	}
	done, err := with.Delete(ctx, list, t)
	if errors.Is(err, registries.ErrNoDelete) {
		err = &cmdline.Error{Class: cmdline.ClassNetwork, Object: t.Host, Err: err,
			Hint: "allow deleting in the registry's configuration, such as storage.delete.enabled of docker-registry"}
	}
	if done == nil || err != nil && len(done.Images) == 0 {
		return withoutRecord(err, list)
	}
	if err == nil {
		err = KeptStatus(done)
	}
	if format.IsDocument() {
		return errors.Join(p.PrintValue(format, done), err)
	}
	_, failed := p.Stdout.Write([]byte(printable.Text(repositoriesText(done.Repositories))))
	WarnKept(p, done)
	for _, line := range deletionSummary(done, with.DryRun) {
		p.Log.Info(line)
	}
	return errors.Join(failed, err)
}

// WarnKept lists what was not deleted.
func WarnKept(p *option.Session, d *mirror.Deletion) {
	for _, i := range d.Images {
		if i.Status == "kept" || i.Status == "tagged" {
			p.Log.Warn(printable.Text(fmt.Sprintf("%s is not deleted: %s", strings.TrimPrefix(i.Reference, dockerScheme),
				i.Error)))
		}
	}
}

// deletionSummary says what was deleted, or would be.
func deletionSummary(d *mirror.Deletion, dry bool) []string {
	counts := map[string]int{}
	for _, i := range d.Images {
		counts[i.Status]++
	}
	all := program.Count(len(d.Images), "image")
	if dry {
		return []string{fmt.Sprintf("%s: %d to delete, %d are gone, %d kept, %d failed; %s, less what other images "+
			"share; nothing is deleted in a dry run", all, counts["planned"], counts["absent"], counts["kept"],
			counts["failed"], cmdline.FormatSize(sumOf(d.Repositories)))}
	}
	text := fmt.Sprintf("%s: %d deleted, %d were gone, %d kept, %d failed", all, counts["deleted"], counts["absent"],
		counts["kept"]+counts["tagged"], counts["failed"])
	if n := counts["untagged"]; n > 0 {
		text += fmt.Sprintf(", %d without a tag now, as others need them", n)
	}
	lines := []string{text}
	if counts["deleted"] > 0 {
		lines = append(lines, "next: the garbage collection of the registry frees the space")
	}
	return lines
}
