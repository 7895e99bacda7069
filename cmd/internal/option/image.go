package option

import (
	"context"
	"errors"

	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/serve"
)

// ImageSource serves the catalog of an image directly from its layers, and an image's database as from a file.
func (p *Session) ImageSource(ctx context.Context, ref string, o render.Options) (serve.Source, error) {
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

// CatalogHelp is the help paragraph about references for commands that read catalogs and not bundles.
var CatalogHelp = "A reference is a catalog directory, a directory with package manifests (package.yaml), an index " +
	"database, or an image of\n" +
	"a catalog or of a database: NAME or docker://NAME in a registry, " + program.Forms(0, 2) + ",\n" +
	program.Forms(2, len(program.Transports)) + ". A local path takes precedence over an image of " +
	"the same name."

// ReferenceHelp is the same paragraph for commands that also read bundles.
var ReferenceHelp = "A reference is a catalog directory, a bundle directory, a directory with package manifests " +
	"(package.yaml), an index\n" +
	"database, or an image of a catalog, of a database or of a bundle: NAME or docker://NAME in a registry, " +
	program.Forms(0, 1) + ",\n" +
	program.Forms(1, len(program.Transports)) + ". A local path takes " +
	"precedence\n" +
	"over an image of the same name."
