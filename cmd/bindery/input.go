package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/render"
)

// catalogInput opens and validates the catalog to build.
func (p *program) catalogInput(c *cli.Context, known *build.Cache) (build.CatalogInput, error) {
	ref := c.Args().First()
	info, err := os.Stat(ref)
	if errors.Is(err, fs.ErrNotExist) {
		return build.CatalogInput{}, &cmdline.Error{Class: cmdline.ClassLocal, Object: ref, Err: err,
			Hint: "the argument is a catalog directory or an index database; convert an image with \"bindery migrate " +
				"oci:LAYOUT:TAG DIR\""}
	}
	if err != nil {
		return build.CatalogInput{}, err
	}
	o, err := p.renderOptions(c)
	if err != nil {
		return build.CatalogInput{}, err
	}
	// A database and package manifests are validated before their first blob comes out.
	rendered := func() (build.CatalogInput, error) {
		blobs, err := o.Render(c.Context, ref)
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
	files, err := build.ReadCatalog(c.Context, root,
		build.ReadOptions{Dir: ref, Jobs: o.Jobs, Warn: p.warnAt, Read: p.loading(ref), Cache: known, Program: version.Program()})
	if err != nil {
		return build.CatalogInput{}, err
	}
	if o.Level != edit.LevelNone && o.Level != "" {
		return rendered()
	}
	return build.CatalogInput{FS: root, Files: files}, nil
}
