package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/serve"
)

// imageSource serves the catalog of an image directly from its layers, and an image's database as from a file.
func (p *program) imageSource(ctx context.Context, ref string, o render.Options) (serve.Source, error) {
	files, err := o.OpenCatalogImage(ctx, ref)
	if errors.Is(err, render.ErrNotAllowed) {
		o.Allow = []render.Kind{render.DatabaseImage}
		blobs, err := o.Render(ctx, ref)
		return serve.Blobs(ref, blobs), err
	}
	if err != nil {
		return serve.Source{}, err
	}
	return serve.FileSystem(ref, files.Configs, files.Cache).Closing(files.Close), nil
}

// catalogHelp is the help paragraph about references for commands that read catalogs and not bundles.
var catalogHelp = "A reference is a catalog directory, a directory with package manifests (package.yaml), an index " +
	"database, or an image of\n" +
	"a catalog or of a database: NAME or docker://NAME in a registry, " + forms(0, 2) + ",\n" +
	forms(2, len(transports)) + ". A local path takes precedence over an image of " +
	"the same name."

// referenceHelp is the same paragraph for commands that also read bundles.
var referenceHelp = "A reference is a catalog directory, a bundle directory, a directory with package manifests " +
	"(package.yaml), an index\n" +
	"database, or an image of a catalog, of a database or of a bundle: NAME or docker://NAME in a registry, " +
	forms(0, 1) + ",\n" +
	forms(1, len(transports)) + ". A local path takes " +
	"precedence\n" +
	"over an image of the same name."

// readFlags are the flags of every command that reads references.
func readFlags() []cli.Flag {
	return append([]cli.Flag{inCategory(jobsFlag(), "work"), platformFlag()}, imageFlags()...)
}
