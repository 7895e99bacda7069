package option

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/render"
)

// Input opens and validates the catalog to build.
func (o *Catalogs) Input(ctx context.Context, p *Session, from *Images, jobs int, ref string, known *build.Cache) (build.CatalogInput, error) {
	info, err := StatInput(ref)
	if err != nil {
		return build.CatalogInput{}, err
	}
	with, err := o.Options(ctx, p, from, jobs, ref)
	if err != nil {
		return build.CatalogInput{}, err
	}
	// A database and package manifests are validated before their first blob comes out.
	rendered := func() (build.CatalogInput, error) {
		blobs, err := with.Render(ctx, ref)
		return build.CatalogInput{Blobs: blobs}, err
	}
	if !info.IsDir() {
		return rendered()
	}
	switch kind, err := render.Classify(ref); {
	case err != nil:
		return build.CatalogInput{}, err
	case kind == render.ManifestsDirectory:
		return rendered()
	case kind != render.CatalogDirectory:
		return build.CatalogInput{}, fmt.Errorf("%q is a %s, not a catalog", ref, kind)
	}
	root, err := declcfg.OpenDir(ref)
	if err != nil {
		return build.CatalogInput{}, err
	}
	files, err := build.ReadCatalog(ctx, root,
		build.ReadOptions{Dir: ref, Jobs: with.Jobs, Warn: p.WarnAt, Read: p.Loading(ref), Cache: known, Program: version.Program()})
	if err != nil {
		return build.CatalogInput{}, err
	}
	if with.Level != edit.LevelNone && with.Level != "" {
		return rendered()
	}
	return build.CatalogInput{FS: root, Files: files}, nil
}

// StatInput looks at the directory or the database of a catalog to build, before anything is asked of a registry.
func StatInput(ref string) (fs.FileInfo, error) {
	info, err := os.Stat(ref)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &cmdline.Error{Class: cmdline.ClassLocal, Object: ref, Err: err,
			Hint: "the argument is a catalog directory or an index database; convert an image with \"bindery migrate " +
				"oci:LAYOUT:TAG DIR\""}
	}
	return info, err
}
