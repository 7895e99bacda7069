package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/build/indeximage"
	catalogcmd "github.com/operator-bindery/bindery/cmd/internal/catalog"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/scaffold"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/sqlite"
)

// generatedCatalog is the directory to which --generate writes a file-based catalog, next to the Dockerfile's build
// context.
const generatedCatalog = "configs"

// writeFiles writes the edited index and a Dockerfile for its image to the working directory.
func (o *indexOptions) writeFiles(ctx context.Context, p *option.Session, i catalogcmd.ImageEdit) (err error) {
	for _, flag := range []string{"push", "load", "to", "platform", "digest-file", "iid-file", "image-refs",
		"metadata-file", "server", "annotation", "format", "compression", "cache", "max-layers", "previous"} {
		if p.Given(flag) {
			return cmdline.Usagef("--generate builds no image: it cannot be combined with --%s", flag)
		}
	}
	if err := option.CheckNoDocuments(p, "with --generate, which builds no image"); err != nil {
		return err
	}
	if err := o.CheckAccount(i.From); err != nil {
		return err
	}
	if i.From != "" {
		for _, out := range []string{o.dockerfile, generatedCatalog, scaffold.DatabaseFile} {
			if err := atomicfs.CheckApart(i.From, filepath.FromSlash(out)); err != nil {
				return err
			}
		}
	}
	if err := scaffold.CheckDockerfile(o.dockerfile); err != nil {
		return dockerfileError(err)
	}
	// Scripts for opm use these file names.
	begun := change.Directory
	if p.Opm {
		begun = change.Database
	}
	edited, err := o.OpenEdited(ctx, p, i, begun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, edited.Close()) }()
	packages, err := anyPackage(edited.Blobs)
	if err != nil {
		return err
	}
	if err := o.CheckEmpty(p, edited.Name, packages); err != nil {
		return err
	}
	text, err := o.dockerfileText(edited.Kind)
	if err != nil {
		return err
	}
	if !o.DryRun {
		if edited.Kind == change.Database {
			err = o.writeDatabase(ctx, p, edited)
		} else {
			err = writeCatalog(ctx, p, edited)
		}
		if err != nil {
			return err
		}
		if err := scaffold.ReplaceDockerfile(o.dockerfile, text); err != nil {
			return dockerfileError(err)
		}
		p.Log.Info("wrote " + o.dockerfile)
	}
	if err := o.ReportAccount(p, edited.Name, edited.Result); err != nil {
		return err
	}
	return catalogcmd.LeftOut(edited.Result)
}

// anyPackage returns 1 if there is a package among the blobs, and 0 otherwise.
func anyPackage(blobs iter.Seq2[declcfg.Blob, error]) (int, error) {
	for b, err := range blobs {
		if err != nil {
			return 0, err
		}
		if b.BlobSchema() == declcfg.SchemaPackage {
			return 1, nil
		}
	}
	return 0, nil
}

// dockerfileText returns the Dockerfile for a database or a catalog.
func (o *indexOptions) dockerfileText(kind change.Kind) (string, error) {
	base := cmp.Or(o.BaseImage, scaffold.DefaultImage)
	labels, err := cmdline.Pairs("label", o.Labels.Value())
	if err != nil {
		return "", err
	}
	if kind == change.Database {
		return scaffold.DatabaseDockerfile(base, labels)
	}
	builder := base
	if builder == "scratch" {
		builder = scaffold.DefaultImage
	}
	return scaffold.Dockerfile{Dir: generatedCatalog, BaseImage: base, BuilderImage: builder, Labels: labels}.Text()
}

func dockerfileError(err error) error {
	if !errors.Is(err, scaffold.ErrNotGenerated) {
		return err
	}
	return &cmdline.Error{Class: cmdline.ClassLocal, Err: err, Hint: "choose another Dockerfile with -d"}
}

// writeDatabase writes the database. Other files in its directory stay, and a file that is not an index database is
// not replaced.
func (o *indexOptions) writeDatabase(ctx context.Context, p *option.Session, x *indeximage.Index) (err error) {
	path := filepath.FromSlash(scaffold.DatabaseFile)
	dir := filepath.Dir(path)
	if err := checkReplaceable(ctx, path); err != nil {
		return err
	}
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		// The link's target is outside the build context.
		return &fs.PathError{Op: "write", Path: dir, Err: errors.New("is a symbolic link, which is not followed")}
	}
	err = os.Mkdir(dir, 0o777)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	defer func() {
		if made && err != nil {
			_ = os.Remove(dir) // fails if another run has put something into it
		}
	}()
	defer guard.Recover(&err)
	if _, err := x.WriteDatabase(ctx, path, o.Database(p)); err != nil {
		return catalogcmd.LossHint(x.Name, err)
	}
	p.Log.Info("wrote " + path)
	return nil
}

// checkReplaceable refuses to replace a file that is not an index database.
func checkReplaceable(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err == nil {
		return db.Close()
	}
	return &cmdline.Error{Class: cmdline.ClassLocal, Object: path,
		Hint: "move it, or run the command in another directory",
		Err:  fmt.Errorf("--generate replaces %s only if it is an index database: %w", path, err)}
}

// writeCatalog writes the catalog to a directory that must be missing or empty.
func writeCatalog(ctx context.Context, p *option.Session, x *indeximage.Index) error {
	err := x.Catalog().WriteDir(ctx, generatedCatalog)
	if errors.Is(err, fs.ErrExist) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: generatedCatalog, Err: err,
			Hint: "--generate does not replace a directory: move it, or run the command in another one"}
	}
	if err == nil {
		p.Log.Info("wrote " + generatedCatalog)
	}
	return err
}
