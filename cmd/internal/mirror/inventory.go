package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/stock"
)

// inventoryOptions are the flags of "mirror inventory".
type inventoryOptions struct {
	SetOptions
	option.Images
	option.Answer
	to           string
	repositories cli.StringSlice
	plain        bool
	jobs         int
}

func mirrorInventoryCommand(p *option.Session) *cli.Command {
	o := &inventoryOptions{}
	return &cli.Command{
		Name:      "inventory",
		Usage:     "write down what a registry has, for an archive with only what is missing",
		ArgsUsage: "REGISTRY",
		Description: `Lists the repositories below docker://REGISTRY[/PATH] with their tags, manifests and
blobs. The file is taken to the other side of the air gap, where "mirror run --against FILE file://DIR" packs
only what is not in it.

A registry that does not list its repositories is asked for those of the image set (--config) and of
--repository.` +
			program.Examples("bindery mirror inventory docker://registry.example.com/olm --to inventory.json.gz",
				"bindery mirror inventory docker://registry.example.com/olm -c imageset.yaml --plain"),
		Flags: program.Flags(o.SetOptions.flags(), []cli.Flag{
			&cli.StringFlag{Name: "to", Destination: &o.to, Usage: "`FILE` to write (default standard output)"},
			&cli.StringSliceFlag{Name: "repository", Destination: &o.repositories,
				Usage: "`PATH` of a repository below the given one; can be repeated"},
			&cli.BoolFlag{Name: "plain", Destination: &o.plain, Usage: "write JSON and not JSON in gzip"},
			&cli.BoolFlag{Name: "dry-run", Destination: &o.Request.DryRun, Usage: "list the repositories with their sizes, and write no inventory",
				EnvVars: program.Env("dry-run")},
			o.maxNestedPathsFlag(), option.JobsFlag(&o.jobs, "work"),
		}, o.Answer.Flags(), o.FlagsWithoutPolicy()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args[0]) })),
	}
}

// isTerminal reports whether people would see what is written.
func isTerminal(w *cmdline.Pipe) bool {
	f, ok := w.W.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (o *SetOptions) maxNestedPathsFlag() cli.Flag {
	return &cli.IntFlag{Name: "max-nested-paths", Destination: &o.Request.Target.MaxNestedPaths, DefaultText: "no limit",
		Usage: "maximum number `N` of path components at the mirror, as it was mirrored with"}
}

// setTarget reads docker://REGISTRY[/PATH]. Where archives are accepted too, directories are the way out of a
// mistake.
func (o *SetOptions) setTarget(text string, archives bool) error {
	if !strings.HasPrefix(text, dockerScheme) {
		expected := dockerScheme + "REGISTRY[/PATH]"
		if archives {
			expected += " or " + FileScheme + "DIR"
		}
		e := cmdline.Usagef("invalid argument %q, expected %s", text, expected)
		if strings.Contains(text, "://") {
			return e
		}
		e.Hint = fmt.Sprintf("did you mean %q?", dockerScheme+text)
		if archives && (hint.IsDir(text) || !strings.ContainsAny(strings.SplitN(text, "/", 2)[0], ".:")) {
			e.Hint = fmt.Sprintf("did you mean %q?", FileScheme+text)
		}
		if archives && strings.HasSuffix(text, ".tar") {
			e.Hint = fmt.Sprintf("an archive is named by the directory that has its segments: %q", FileScheme+filepath.Dir(text))
		}
		return e
	}
	t, err := imageset.ParseTarget(text)
	if err != nil {
		return program.Usage(err)
	}
	t.MaxNestedPaths = o.Request.Target.MaxNestedPaths
	o.Request.Target = t
	return t.Check()
}

func (o *inventoryOptions) run(ctx context.Context, p *option.Session, dest string) error {
	if err := o.setTarget(dest, false); err != nil {
		return err
	}
	t := o.Request.Target
	names := o.repositories.Value()
	if o.Request.Config != "" {
		with, err := o.Prepare(ctx, p, imageset.Image, &o.Registry)
		if err != nil {
			return err
		}
		if with.Render, err = (&option.Bundles{Images: o.Images, Jobs: o.jobs}).Options(ctx, p); err != nil {
			return err
		}
		of, err := with.Repositories(ctx)
		if err != nil {
			return err
		}
		names = append(names, of...)
	}
	remote, err := newRemote(ctx, p, &o.Registry, nil, nil)
	if err != nil {
		return err
	}
	all, err := remote.Repositories(ctx, t.Host)
	if errors.Is(err, registries.ErrNoCatalog) {
		// Registries answer in the same way to those whom they do not know.
		if err := remote.Ping(ctx, t.String()); err != nil {
			return err
		}
	}
	switch {
	case err == nil:
		names = append(names, below(all, t.Path)...)
	case errors.Is(err, registries.ErrNoCatalog) && len(names) > 0:
	case errors.Is(err, registries.ErrNoCatalog):
		return &cmdline.Error{Class: cmdline.ClassNetwork, Object: t.Host, Err: err,
			Hint: "-c FILE takes the repositories from the image set, and --repository names them"}
	default:
		return err
	}
	slices.Sort(names)
	return o.write(ctx, p, t, remote, slices.Compact(names))
}

// below returns those repositories of a registry that are below a path, without it. An empty path has all.
func below(all []string, path string) (names []string) {
	for _, name := range all {
		if path == "" {
			names = append(names, name)
		} else if rest, ok := strings.CutPrefix(name, path+"/"); ok {
			names = append(names, rest)
		}
	}
	return names
}

// Inventoried is the answer of the command: what an inventory has. The inventory itself is no part of it.
type Inventoried struct {
	// File is the inventory; empty in a dry run.
	File   string `json:"file,omitempty"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Repositories are those that exist, with the size of their blobs.
	Repositories []mirror.RepositoryBytes `json:"repositories"`
	Tags         int                      `json:"tags"`
	Manifests    int                      `json:"manifests"`
	Blobs        int                      `json:"blobs"`
	Bytes        int64                    `json:"bytes"`
	// LeftOut is how much is listed and cannot be read.
	LeftOut int `json:"leftOut,omitempty"`
}

func (o *inventoryOptions) write(ctx context.Context, p *option.Session, t imageset.Target, remote *registries.Client, names []string) error {
	format, err := o.Format()
	if err != nil {
		return err
	}
	to, dry := o.to, o.Request.DryRun
	answer := Inventoried{File: to, DryRun: dry}
	take := func(w io.Writer) error {
		progress := p.Task()
		defer progress.Close()
		done, err := stock.Take(ctx,
			func(name string) (store.Reader, error) { return remote.Repository(name) }, w,
			stock.TakeOptions{Registry: t.Host, Path: t.Path, Repositories: names, Plain: o.plain,
				Jobs: o.jobs,
				Done: func(done, of int) {
					progress.Set(cmdline.State{What: "looking", Done: done, All: of, Units: "repositories"})
				},
				Warn: func(name string, err error) { p.Log.Warn(fmt.Sprintf("%s: left out: %v", name, err)) }})
		if err == nil {
			p.Log.Info(fmt.Sprintf("%d repositories, %s, %s, %s of blobs", done.Repositories, program.Count(done.Tags, "tag"),
				program.Count(done.Manifests, "manifest"), cmdline.FormatSize(done.Bytes)))
		}
		answer.Repositories, answer.Tags, answer.Manifests = mirror.ByRepository(done.ByRepository), done.Tags,
			done.Manifests
		answer.Blobs, answer.Bytes, answer.LeftOut = done.Blobs, done.Bytes, done.LeftOut
		return err
	}
	switch {
	case dry:
		answer.File = ""
		if err := take(io.Discard); err != nil {
			return err
		}
	case to == "" && format.IsDocument():
		return cmdline.Usagef("the inventory and the answer would both be printed: --to FILE writes the inventory to a " +
			"file, and --plain prints it as JSON")
	case to == "" && !o.plain && isTerminal(p.Stdout):
		return cmdline.Usagef("the inventory is compressed: --to FILE writes it to a file, and --plain prints it")
	case to == "":
		return p.Spooled(ctx, take)
	default:
		if err := writeInventoryFile(to, take); err != nil {
			return err
		}
		p.Log.Info(fmt.Sprintf("next: carry %s to the other side, and run there: "+
			"bindery mirror run -c FILE --against %s file://DIR", to, filepath.Base(to)))
	}
	if format.IsDocument() {
		return p.PrintValue(format, answer)
	}
	if dry {
		_, err = p.Stdout.Write([]byte(printable.Text(repositoriesText(answer.Repositories))))
	}
	return err
}

func writeInventoryFile(to string, take func(io.Writer) error) error {
	f, err := atomicfs.NewFile(to, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = f.Abort() }() // it does nothing after a commit
	if err := take(f); err != nil {
		return err
	}
	return f.Commit()
}

// readInventory reads an inventory, and returns its digest.
func readInventory(ctx context.Context, file string) (*stock.Inventory, digest.Digest, error) {
	f, err := regularfile.OpenNamed(ctx, file)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	sum := digest.SHA256.Digester()
	in := io.TeeReader(f, sum.Hash())
	i, err := stock.Read(in)
	if err == nil {
		_, err = io.Copy(io.Discard, in) // what a reader has left
	}
	return i, sum.Digest(), err
}
