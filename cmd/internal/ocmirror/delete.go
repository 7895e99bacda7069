package ocmirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	mirrorcmd "github.com/operator-bindery/bindery/cmd/internal/mirror"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

func (o *options) delete(ctx context.Context, p *option.Session, args []string) error {
	if err := o.begin(p); err != nil {
		return err
	}
	if len(args) < 1 {
		return cmdline.Usagef("requires at least 1 arg(s), only received 0")
	}
	dest := args[0]
	if !strings.HasPrefix(dest, "docker://") {
		return cmdline.Usagef("the destination registry argument must have a docker:// protocol prefix")
	}
	t, err := imageset.ParseTarget(dest)
	if err != nil {
		return program.Usage(err)
	}
	t.MaxNestedPaths = o.Request.Target.MaxNestedPaths
	o.Request.Target = t
	if err := t.Check(); err != nil {
		return err
	}
	if err := errors.Join(p.Filled("shared"), o.deletion.Check()); err != nil {
		return err
	}
	switch {
	case o.v1Images:
		return cmdline.Usagef("--delete-v1-images is not supported: the tags of oc-mirror v1 are not known")
	case o.generate && o.Workspace == "":
		return cmdline.Usagef("the --workspace flag is mandatory when using the --generate flag")
	case o.generate:
		return o.listDeletions(ctx, p)
	case o.deleteFile == "":
		return cmdline.Usagef("the --delete-yaml-file flag is mandatory when not using the --generate flag")
	}
	l, err := mirror.ReadDeleteList(ctx, o.deleteFile)
	if errors.Is(err, fault.ErrInvalid) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: o.deleteFile, Err: err,
			Hint: "the list is the file that the step before wrote: a DeleteImageList"}
	}
	if err != nil {
		return err
	}
	done, err := o.deleteImages(ctx, p, l)
	if done == nil {
		return err
	}
	mirrorcmd.WarnKept(p, done)
	for _, kinds := range [][]mirror.Kind{{mirror.Release, mirror.ReleaseContent}, {mirror.Related, mirror.Bundle}, {mirror.Additional}} {
		asked, gone := 0, 0
		for _, d := range done.Images {
			if slices.Contains(kinds, d.Type) {
				asked++
				if d.Status == "deleted" || d.Status == "absent" || d.Status == "untagged" {
					gone++
				}
			}
		}
		if asked > 0 {
			name := "operator"
			switch kinds[0] {
			case mirror.Additional:
				name = "additional"
			case mirror.Release:
				name = "release"
			}
			fmt.Fprintf(p.Stdout, "%d / %d %s images deleted successfully\n", gone, asked, name)
		}
	}
	if err == nil {
		err = mirrorcmd.KeptStatus(done)
	}
	return err
}

// deleteImages deletes what others do not need. Without a record of what was mirrored, which oc-mirror does not
// have, there is a warning.
func (o *options) deleteImages(ctx context.Context, p *option.Session, l *mirror.DeleteList) (_ *mirror.Deletion, err error) {
	with := &o.deletion
	with.WithoutRecord, with.Log = true, p.Log
	if !p.Given("shared") {
		with.Shared = ""
	}
	if strings.TrimPrefix(o.Workspace, mirrorcmd.FileScheme) != "" {
		if with.Workspace, err = o.OpenWorkspace(""); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, with.Workspace.Close()) }()
	}
	if err := o.createClients(ctx, p, &with.Options, program.Destination); err != nil {
		return nil, err
	}
	if with.Remote, err = o.newRemote(ctx, p, program.Destination, nil); err != nil {
		return nil, err
	}
	return with.Delete(ctx, l, o.Request.Target)
}

// listDeletions writes the list of images to delete, and the configuration beside it.
func (o *options) listDeletions(ctx context.Context, p *option.Session) (err error) {
	with := &o.deletion
	if with.Options, err = o.Prepare(ctx, p, imageset.Delete, &o.Registry); err != nil {
		return err
	}
	with.WithoutRecord = true
	if err := o.createClients(ctx, p, &with.Options, program.Destination); err != nil {
		return err
	}
	if with.Workspace, err = o.OpenWorkspace(""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.Workspace.Close()) }()
	if with.Remote, err = o.newRemote(ctx, p, program.Destination, nil); err != nil {
		return err
	}
	l, problems, err := with.ListDeletions(ctx)
	if err != nil {
		return err
	}
	defer func() {
		for _, line := range mirrorcmd.NotThere(problems) {
			p.Log.Warn(line)
		}
	}()
	text, err := l.MarshalYAML()
	if err != nil {
		return err
	}
	id := ""
	if text := o.deleteID; text != "" {
		id = "-" + filepath.Base(text)
	}
	set := *with.Set
	if p := &set.Platform; len(p.Channels) > 0 && len(p.Architectures)+len(p.Platforms) == 0 {
		p.Architectures = []string{"amd64"} // as oc-mirror writes it
	}
	for name, content := range map[string][]byte{"delete-images" + id + ".yaml": text,
		"delete-imageset-config" + id + ".yaml": set.Pinned(imageset.Delete,
			func(imageset.Operator) digest.Digest { return "" }, nil, nil)} {
		if _, err := with.Workspace.Write(content, "delete", name); err != nil {
			return err
		}
	}
	fmt.Fprintln(p.Stdout, filepath.Join(with.Workspace.Dir(), "delete")+" file created")
	return nil
}

// list lists the packages of a catalog, the channels of a package, or the versions of a channel.
func (o *options) list(ctx context.Context, p *option.Session, args []string) error {
	if err := o.begin(p); err != nil {
		return err
	}
	if len(args) > 0 {
		return cmdline.Usagef("\"list %s\" is not supported: \"list operators\" is", args[0])
	}
	switch {
	case o.catalogs && o.version == "", !o.catalogs && o.version != "":
		return cmdline.Usagef("--catalogs needs --version X.Y, and --version is for --catalogs")
	case o.catalogs && o.catalog != "":
		return cmdline.Usagef("--catalog and --catalogs cannot be used together")
	case o.catalogs:
		return o.listCatalogs(ctx, p)
	case o.catalog == "":
		return cmdline.Usagef("\"list operators\" needs --catalog NAME, or --catalogs --version X.Y")
	}
	if o.channel != "" && o.pkg == "" {
		return cmdline.Usagef("--channel needs --package")
	}
	var with mirror.Options
	if err := o.createClients(ctx, p, &with, program.Source); err != nil {
		return err
	}
	name := strings.TrimPrefix(o.catalog, "docker://")
	with.Render.Skeleton = o.channel != "" // display names are in what the skeleton leaves out
	blobs, err := with.Render.Render(ctx, name)
	if err != nil {
		return err
	}
	var b strings.Builder
	if o.channel != "" {
		err = printVersions(&b, blobs, o.pkg, o.channel)
	} else {
		err = printTables(&b, blobs, o.pkg)
	}
	if err != nil {
		return err
	}
	_, err = p.Stdout.Write([]byte(b.String()))
	return err
}

// printTables writes the tables of "oc-mirror list operators": the packages with their display names and default
// channels; for a package also its channels with their heads.
func printTables(w io.Writer, blobs iter.Seq2[declcfg.Blob, error], pkg string) error {
	listing, err := list.Load(blobs)
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(listing.Packages(), func(p list.Package) bool { return pkg != "" && p.Name != pkg })
	if err := list.PackageTable(packages).Write(w, printable.Cell); err != nil || pkg == "" {
		return err
	}
	channels, err := listing.Channels(pkg)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	return list.ChannelTable(channels).Write(w, printable.Cell)
}

// printVersions writes the versions of a channel.
func printVersions(w io.Writer, blobs iter.Seq2[declcfg.Blob, error], pkg, channel string) error {
	c, err := declcfg.Collect(blobs)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(c.Channels, func(h declcfg.Channel) bool { return h.Package == pkg && h.Name == channel })
	if at < 0 {
		return &declcfg.NotFoundError{Kind: "channel", Name: channel}
	}
	in := map[string]bool{}
	for _, e := range c.Channels[at].Entries {
		in[e.Name] = true
	}
	var versions []declcfg.VersionRelease
	for i := range c.Bundles {
		if b := &c.Bundles[i]; b.Package == pkg && in[b.Name] {
			v, err := b.VersionRelease()
			if err != nil {
				return err
			}
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, declcfg.VersionRelease.Compare)
	fmt.Fprintln(w, "VERSIONS")
	for _, v := range versions {
		fmt.Fprintln(w, printable.Text(v.String()))
	}
	return nil
}
