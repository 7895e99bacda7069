package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/layers"
)

// databasePath is where an image has its index database.
const databasePath = "database/index.db"

// IndexInput is the index database that goes into an image.
type IndexInput struct {
	// FS and Name locate the file. It must not change until the image is built.
	FS   fs.FS
	Name string
	// Packages are the packages in the database, for the report about the image.
	Packages []string
}

// databasePurpose returns that of images of an index database, as in opm's Dockerfile.
func databasePurpose() purpose {
	labels := map[string]string{DatabaseLabel: "/" + databasePath, ConfigsLabel: ""}
	return purpose{"bindery index", func(c *v1.ImageConfig, o *Options, b *base) {
		c.Labels = withLabels(c.Labels, map[string]string{DatabaseLabel: "/" + databasePath})
		delete(c.Labels, ConfigsLabel)
		serving(c, o, b)
		c.Cmd = []string{"registry", "serve", "--database", "/" + databasePath}
	}, labels}
}

// Index builds the image of an index database: the server, and the unchanged database in a separate layer. It does not
// read the database. The caller must close the image, and keep o.Dir until it has been copied.
func Index(ctx context.Context, in IndexInput, o Options) (_ *Image, err error) {
	given := o
	o.purpose, o.caches = databasePurpose(), cataloglayer.Caches{}
	if err := o.normalize(); err != nil {
		return nil, err
	}
	if in.FS == nil {
		return nil, errors.New("an index image needs a database")
	}
	file, err := layers.File(databasePath, in.FS, in.Name)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	file.Mode = 0o644 // every user of a cluster must be able to read it
	img, err := serveImage(ctx, &o, databasePath, func(below int) ([]part, error) {
		if err := o.checkLayers(below + 1); err != nil {
			return nil, err
		}
		l := layers.Layer{Name: "database", Entries: []layers.Entry{file}}
		return []part{{kind: LayerDatabase, packages: in.Packages, dir: databasePath, layer: l}}, nil
	})
	if err != nil {
		return nil, err
	}
	img.rebuilds(given, func(ctx context.Context, o Options) (*Image, error) { return Index(ctx, in, o) })
	return img, nil
}
