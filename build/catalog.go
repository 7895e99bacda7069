package build

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/layers"
)

// CatalogInput is the catalog that goes into an image: a directory, blobs, or a directory of which some packages were
// changed. Set FS or Blobs, or both and Changed.
type CatalogInput struct {
	// FS is a catalog directory. It must not change until the image is built.
	FS fs.FS
	// Files are the files of FS that make up the catalog, see [FilesOf]; if nil, the catalog is loaded to determine
	// them. Other files are not in the image: ignored files, and the ignore files themselves.
	Files []File
	// Blobs is a catalog as a stream. Consecutive blobs of one package are stored together.
	Blobs iter.Seq2[declcfg.Blob, error]
	// Changed are the packages whose blobs come from Blobs instead of FS; Blobs contains blobs of no others. These
	// packages are removed from files of FS that also have other packages.
	Changed []string
}

// Catalog builds a catalog image: the server, and below /configs the catalog, one layer for each package. It does not
// validate the catalog. Files with one package are used unchanged; the image's catalog loads to the same blobs as the
// input. The caller must close the image, and keep o.Dir until it has been copied.
func Catalog(ctx context.Context, in CatalogInput, o Options) (_ *Image, err error) {
	var s *blobSpool
	given := o
	content, err := in.planParts(ctx, &o, &s)
	if err != nil {
		return nil, err
	}
	img, err := serveImage(ctx, &o, "", content)
	if err == nil {
		img.rebuilds(given, func(ctx context.Context, o Options) (*Image, error) { return Catalog(ctx, in, o) })
	}
	switch {
	case s == nil:
	case err == nil && img.NeedsInput():
		img.closers = append(img.closers, s)
	default:
		if cerr := s.Close(); cerr != nil {
			if img != nil {
				cerr = errors.Join(cerr, img.Close())
			}
			return nil, errors.Join(err, cerr)
		}
	}
	return img, err
}

// planParts checks options and input, and returns a function that determines the layers of the catalog. Part of their
// content is in the spool s, which the caller closes.
func (in CatalogInput) planParts(ctx context.Context, o *Options, s **blobSpool) (func(below int) ([]part, error),
	error) {
	o.purpose = catalogPurpose()
	if err := o.normalize(); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	return func(below int) (_ []part, err error) {
		*s = newSpool(o.Dir)
		contents, err := in.plan(ctx, o, *s)
		if err != nil {
			return nil, err
		}
		// Hash before parsing, so that the parsed bytes are compared with the digests.
		if err := hashContents(ctx, o, contents); err != nil {
			return nil, err
		}
		return catalogParts(o, below, contents)
	}, nil
}

// serveImage builds an image with a server. content returns its parts for a given number of layers below them; file is
// the path of the only file in them, if there is only one.
func serveImage(ctx context.Context, o *Options, file string,
	content func(below int) ([]part, error)) (_ *Image, err error) {
	s, err := planLayers(ctx, o, file, content)
	if err != nil {
		return nil, err
	}
	img, err := writeImage(ctx, o, s.bases, s.parts)
	if err != nil {
		return nil, errors.Join(err, closeBases(s.bases))
	}
	img.BaseServer, img.Hidden = s.baseServer, s.hidden
	return img, nil
}

// settled is a planned image before any layer is written.
type settled struct {
	bases      []*base
	baseServer string
	hidden     []string
	parts      []part // above the server
}

// planLayers opens the bases and determines the server and the layers.
func planLayers(ctx context.Context, o *Options, file string,
	content func(below int) ([]part, error)) (s settled, err error) {
	if s.bases, err = openBases(ctx, o); err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeBases(s.bases))
		}
	}()
	if s.baseServer, err = o.settleServer(s.bases); err != nil {
		return s, err
	}
	var hide part
	if hide, s.hidden, err = reset(s.bases, file); err != nil {
		return s, err
	}
	below := 0
	for _, b := range s.bases {
		if b != nil {
			below = max(below, len(b.layers))
		}
	}
	if len(o.Servers) > 0 {
		below++
	}
	if len(hide.layer.Entries) > 0 {
		s.parts = append(s.parts, hide)
	}
	more, err := content(below + len(s.parts))
	s.parts = append(s.parts, more...)
	return s, err
}

// check refuses missing and contradictory fields.
func (in CatalogInput) check() error {
	both := in.FS != nil && in.Blobs != nil
	if in.FS == nil && in.Blobs == nil || both != (in.Changed != nil) {
		return errors.New("a catalog needs a directory or blobs, or a directory and the blobs of changed packages")
	}
	return nil
}

// plan determines the content of each package.
func (in CatalogInput) plan(ctx context.Context, o *Options, s *blobSpool) ([]content, error) {
	files := in.Files
	if files == nil && in.FS != nil {
		c, err := declcfg.Load(ctx, in.FS, declcfg.LoadOptions{Skeleton: true, Jobs: o.Jobs})
		if err != nil {
			return nil, err
		}
		if files, err = FilesOf(c); err != nil {
			return nil, err
		}
	}
	p := planner{fsys: in.FS, s: s, at: newPlaces(), changed: map[string]bool{}, entries: map[string][]layers.Entry{}}
	for _, pkg := range in.Changed {
		p.changed[pkg] = true
	}
	if err := p.files(ctx, files); err != nil {
		return nil, err
	}
	if in.Blobs != nil {
		format := formats(files)
		if err := p.blobs(ctx, in.Blobs, format); err != nil {
			return nil, err
		}
	}
	return sortedContents(p.entries)
}

// formats returns the format for the blobs of each package: that of most of its files, else JSON.
func formats(files []File) func(pkg string) declcfg.Format {
	yaml := map[string]int{} // files in YAML minus those in JSON
	for _, f := range files {
		for _, pkg := range f.Packages {
			if strings.HasSuffix(f.Path, ".json") {
				yaml[pkg]--
			} else {
				yaml[pkg]++
			}
		}
	}
	return func(pkg string) declcfg.Format {
		if yaml[pkg] > 0 {
			return declcfg.FormatYAML
		}
		return declcfg.FormatJSON
	}
}

// catalogParts returns the layers of the catalog, without base and server.
func catalogParts(o *Options, below int, contents []content) ([]part, error) {
	top := wholeParts(o, contents)
	parts, err := packageParts(o, below+len(top), contents)
	return append(parts, top...), err
}

// wholeParts are the layers above all packages: one for each cache that has something there.
func wholeParts(o *Options, contents []content) []part {
	var parts []part
	for _, l := range o.caches.Whole(o.Dir, filesOf(contents)) {
		parts = append(parts, part{kind: LayerCache, dir: l.Dir, layer: l.Layer})
	}
	return parts
}

// packageParts are the layers of the packages, with other layers besides them.
func packageParts(o *Options, below int, contents []content) ([]part, error) {
	if len(contents) == 0 {
		return []part{{kind: LayerPackages, layer: cataloglayer.Empty()}}, nil
	}
	groups, err := group(contents, contentBudget(o.MaxLayers, below), o.Previous)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, g := range groups {
		parts = append(parts, packagesPart(o, g))
	}
	return parts, nil
}

// packagesPart returns the layer of some packages: their catalogs and caches.
func packagesPart(o *Options, g []content) part {
	p := part{kind: LayerPackages}
	if len(g) == 1 && g[0].stacked != nil {
		p.stacked, p.packages = g[0].stacked, g[0].stacked.Packages
		p.layer.Name = strings.Join(p.packages, ", ")
		return p
	}
	for _, c := range g {
		if c.pkg != "" {
			p.packages = append(p.packages, c.pkg)
		}
	}
	p.layer, p.notices = o.caches.Packages(filesOf(g), o.Dir)
	return p
}

// writeImage writes the layers that are not cached and assembles the image, with the servers as the lowest layers.
func writeImage(ctx context.Context, o *Options, bases []*base, common []part) (*Image, error) {
	if o.Compression == CompressionAuto {
		return bothCompressions(o, func(one *Options) (*Image, error) { return writeImage(ctx, one, bases, common) })
	}
	mediaType, err := layerType(o.Format, o.Compression)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, s := range o.Servers {
		if s, err = s.hashed(ctx); err != nil {
			return nil, err
		}
		parts = append(parts, part{kind: LayerServer, layer: s.layer()})
	}
	parts = append(parts, common...)
	if err := keyParts(ctx, o, parts); err != nil {
		return nil, err
	}
	w := newPartWriter(o, parts, mediaType)
	if err := w.write(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // cancelled while the last layers were being finished
		return nil, context.Cause(ctx)
	}
	n := len(o.Servers)
	return assemble(o, w.store, w.lazy, bases, w.layers[:n], w.layers[n:])
}
