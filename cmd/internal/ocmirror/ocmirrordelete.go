package ocmirror

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/list"
	mirrorcmd "github.com/operator-bindery/bindery/cmd/internal/mirror"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

func ocMirrorDelete(p *option.Session, c *cli.Context) error {
	if err := ocMirrorLog(p, c); err != nil {
		return err
	}
	if c.NArg() < 1 {
		return cmdline.Usagef("requires at least 1 arg(s), only received 0")
	}
	dest := c.Args().First()
	if !strings.HasPrefix(dest, "docker://") {
		return cmdline.Usagef("the destination registry argument must have a docker:// protocol prefix")
	}
	t, err := imageset.ParseTarget(dest)
	if err != nil {
		return program.Usage(err)
	}
	switch {
	case c.Bool("delete-v1-images"):
		return cmdline.Usagef("--delete-v1-images is not supported: the tags of oc-mirror v1 are not known")
	case c.Bool("generate") && c.String("workspace") == "":
		return cmdline.Usagef("the --workspace flag is mandatory when using the --generate flag")
	case c.Bool("generate"):
		return ocMirrorGenerate(p, c, t)
	case c.String("delete-yaml-file") == "":
		return cmdline.Usagef("the --delete-yaml-file flag is mandatory when not using the --generate flag")
	}
	file := c.String("delete-yaml-file")
	l, err := mirror.ReadDeleteList(c.Context, file)
	if errors.Is(err, fault.ErrInvalid) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: file, Err: err,
			Hint: "the list is the file that the step before wrote: a DeleteImageList"}
	}
	if err != nil {
		return err
	}
	done, err := ocMirrorDeleteList(p, c, l, t)
	if done == nil {
		return err
	}
	mirrorcmd.WarnKept(p, done)
	for _, kinds := range [][]mirror.Kind{{mirror.Related, mirror.Bundle}, {mirror.Additional}} {
		asked, gone := 0, 0
		for _, d := range done.Images {
			if slices.Contains(kinds, d.Type) {
				asked++
				if d.Status == "deleted" || d.Status == "absent" {
					gone++
				}
			}
		}
		if asked > 0 {
			name := "operator"
			if kinds[0] == mirror.Additional {
				name = "additional"
			}
			fmt.Fprintf(p.Stdout, "%d / %d %s images deleted successfully\n", gone, asked, name)
		}
	}
	if err == nil {
		err = mirrorcmd.KeptStatus(done)
	}
	return err
}

// ocMirrorDeleteList deletes what others do not need. Without a record of what was mirrored, which oc-mirror does not
// have, there is a warning.
func ocMirrorDeleteList(p *option.Session, c *cli.Context, l *mirror.DeleteList,
	t imageset.Target) (_ *mirror.Deletion, err error) {
	o, err := mirrorcmd.DeletionOptions(p, c, l, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Workspace.Close()) }()
	o.WithoutRecord = true
	var clients mirror.Options
	if err := ocMirrorClients(p, c, &clients, "dest"); err != nil {
		return nil, err
	}
	o.Render = clients.Render
	if o.Remote, err = ocMirrorRemote(p, c, nil); err != nil {
		return nil, err
	}
	return mirror.Delete(c.Context, l, t, o)
}

// ocMirrorGenerate writes the list of images to delete, and the configuration beside it.
func ocMirrorGenerate(p *option.Session, c *cli.Context, t imageset.Target) (err error) {
	o := mirror.DeleteOptions{Options: mirror.Options{Target: t, Log: p.Log}, Shared: c.String("shared") == "delete",
		Signatures: c.Bool("delete-signatures"), WithoutRecord: true}
	if o.Set, err = mirrorcmd.ImageSet(p, c, imageset.Delete); err != nil {
		return err
	}
	if err := ocMirrorClients(p, c, &o.Options, "dest"); err != nil {
		return err
	}
	if o.Workspace, err = mirror.OpenWorkspace(strings.TrimPrefix(c.String("workspace"), mirrorcmd.FileScheme)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Workspace.Close()) }()
	if o.Remote, err = ocMirrorRemote(p, c, nil); err != nil {
		return err
	}
	l, problems, err := mirror.ListDeletions(c.Context, o)
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
	if text := c.String("delete-id"); text != "" {
		id = "-" + filepath.Base(text)
	}
	for name, content := range map[string][]byte{"delete-images" + id + ".yaml": text,
		"delete-imageset-config" + id + ".yaml": o.Set.Pinned(imageset.Delete,
			func(imageset.Operator) digest.Digest { return "" })} {
		if _, err := o.Workspace.Write(content, "delete", name); err != nil {
			return err
		}
	}
	fmt.Fprintln(p.Stdout, filepath.Join(o.Workspace.Dir(), "delete")+" file created")
	return nil
}

// ocMirrorList lists the packages of a catalog, the channels of a package, or the versions of a channel.
func ocMirrorList(p *option.Session, c *cli.Context) error {
	if err := ocMirrorLog(p, c); err != nil {
		return err
	}
	if c.Bool("catalogs") {
		return cmdline.Usagef("--catalogs is not supported: it needs the vendor's list of catalogs; give --catalog")
	}
	if c.NArg() > 0 {
		return cmdline.Usagef("\"list %s\" is not supported: \"list operators\" is", c.Args().First())
	}
	if c.String("version") != "" {
		return cmdline.Usagef("--version is not supported: it needs the vendor's list of catalogs; give --catalog")
	}
	if c.String("catalog") == "" {
		return cmdline.Usagef("\"list operators\" needs --catalog NAME")
	}
	if c.String("channel") != "" && c.String("package") == "" {
		return cmdline.Usagef("--channel needs --package")
	}
	var o mirror.Options
	if err := ocMirrorClients(p, c, &o, "src"); err != nil {
		return err
	}
	name := strings.TrimPrefix(c.String("catalog"), "docker://")
	pkg, channel := c.String("package"), c.String("channel")
	o.Render.Skeleton = channel != "" // display names are in what the skeleton leaves out
	blobs, err := o.Render.Render(c.Context, name)
	if err != nil {
		return err
	}
	var b strings.Builder
	if channel != "" {
		err = ocMirrorVersions(&b, blobs, pkg, channel)
	} else {
		err = ocMirrorTables(&b, blobs, pkg)
	}
	if err != nil {
		return err
	}
	_, err = p.Stdout.Write([]byte(b.String()))
	return err
}

// ocMirrorTables writes the tables of packages and channels of oc-mirror (MIRROR 13.4).
func ocMirrorTables(w io.Writer, blobs iter.Seq2[declcfg.Blob, error], pkg string) error {
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

// ocMirrorVersions writes the versions of a channel.
func ocMirrorVersions(w io.Writer, blobs iter.Seq2[declcfg.Blob, error], pkg, channel string) error {
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
