package inventory

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/supply/sbom"
)

// serverPath is the server of a catalog image.
const serverPath = "bin/opm"

// readCatalog is a catalog image that was read, for images with the same layers.
type readCatalog struct {
	place string
	image images.SurveyedImage
	read  *examined
}

func (x *examiner) catalog(ctx context.Context, i images.SurveyedImage, place string, e *examined) (err error) {
	for _, before := range x.catalogs {
		if same, err := x.sameCatalog(ctx, i, place, before, e); same || err != nil {
			return err
		}
	}
	eo := images.ExtractOptions{Limits: x.withProgram(), Temp: x.o.Temp}
	tree, err := i.Extract(ctx, []string{place, serverPath}, eo)
	if errors.Is(err, images.ErrInvalid) {
		// The path of the server may lead through a link, as in images with /usr merged: the server is then in a layer
		// that is not described.
		tree, err = i.Extract(ctx, []string{place}, eo)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	if err := x.program(tree, e); err != nil {
		return err
	}
	configs, err := fs.Sub(tree, place)
	if err != nil {
		return err
	}
	if info, err := fs.Stat(tree, place); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: there is no directory /%s in it", images.ErrInvalid, place)
	}
	e.packages, err = packages(declcfg.Stream(ctx, configs, declcfg.LoadOptions{Jobs: x.o.Jobs, Skeleton: true}, nil))
	if err == nil {
		x.catalogs = append(x.catalogs, readCatalog{place, i, e})
	}
	return err
}

// database reads the image of an index database.
func (x *examiner) database(ctx context.Context, i images.SurveyedImage, place string, e *examined) (err error) {
	tree, err := i.Extract(ctx, []string{serverPath}, images.ExtractOptions{Limits: x.withProgram(), Temp: x.o.Temp})
	switch {
	case err == nil:
		err = errors.Join(x.program(tree, e), tree.Close())
	case errors.Is(err, images.ErrInvalid):
		err = nil // a file in place of the server is no error, as in a catalog image
	}
	if err != nil {
		return err
	}
	e.packages, err = packages(render.Options{ImageLimits: x.o.Limits, TempDir: x.o.Temp, Jobs: x.o.Jobs, Reuse: true}.ReadDatabase(ctx, i.Image, place))
	return err
}

// program reads the server in a tree, if there is one.
func (x *examiner) program(tree *images.Tree, e *examined) (err error) {
	f, err := tree.Open(serverPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	at, ok := f.(io.ReaderAt)
	if !ok || !info.Mode().IsRegular() {
		return nil
	}
	e.contents.Program, err = sbom.ReadProgram(serverPath, at, info.Size(), x.o.Release)
	return err
}

// sameCatalog tells whether an image has the catalog of one that was read: all layers are equal but those that are
// declared to hold the server, and these hold nothing else in both. The servers are then read from their layers.
func (x *examiner) sameCatalog(ctx context.Context, i images.SurveyedImage, place string, before readCatalog,
	e *examined) (bool, error) {
	mine, theirs := i.Config.RootFS.DiffIDs, before.image.Config.RootFS.DiffIDs
	if before.place != place || len(mine) != len(theirs) {
		return false, nil
	}
	kinds, kindsBefore := inspect.LayerKinds(i.Image), inspect.LayerKinds(before.image.Image)
	program := before.read.contents.Program
	for n := range mine {
		if mine[n] == theirs[n] {
			continue
		}
		if kinds[n] != build.LayerServer || kindsBefore[n] != build.LayerServer {
			return false, nil
		}
		own, err := x.serverLayer(ctx, i.Image, n, place)
		if err != nil {
			return false, err
		}
		other, err := x.serverLayer(ctx, before.image.Image, n, place)
		if err != nil {
			return false, err
		}
		if own == nil || other == nil || program == nil || program.Digest != other.Digest {
			return false, nil
		}
		program = own
	}
	e.contents.Program, e.packages = program, before.read.packages
	return true, nil
}

// serverLayer reads the server in a layer. It returns nil if the layer has none, or could change the catalog at place.
func (x *examiner) serverLayer(ctx context.Context, i *images.Image, n int, place string) (*sbom.Program, error) {
	id := i.Config.RootFS.DiffIDs[n]
	if p, ok := x.servers[id]; ok {
		return p, nil
	}
	alone := true
	var program *sbom.Program
	_, err := images.NewLayerReader(x.withProgram()).Read(ctx, i, n,
		func(name string, h *tar.Header, content io.Reader) (err error) {
			inside := name == place || strings.HasPrefix(name, place+"/")
			above := h.Typeflag != tar.TypeDir && strings.HasPrefix(place, name+"/")
			if inside || above || strings.HasPrefix(path.Base(name), ".wh.") {
				alone = false
			}
			if name != serverPath || h.Typeflag != tar.TypeReg {
				return nil
			}
			s := spool.New(x.o.Temp, 0)
			defer func() { err = errors.Join(err, s.Close()) }()
			all, err := s.AppendFrom(ctx, content)
			if err != nil {
				return err
			}
			program, err = sbom.ReadProgram(serverPath, s, all.Len, x.o.Release)
			return err
		})
	if err != nil {
		return nil, err
	}
	if !alone {
		program = nil
	}
	x.servers[id] = program
	return program, nil
}

// packages collects what a bill of materials says of a catalog.
func packages(blobs iter.Seq2[declcfg.Blob, error]) ([]sbom.Package, error) {
	byName := map[string]*sbom.Package{}
	at := func(name string) *sbom.Package {
		p, ok := byName[name]
		if !ok {
			p = &sbom.Package{Name: name}
			byName[name] = p
		}
		return p
	}
	for b, err := range blobs {
		if err != nil {
			return nil, err
		}
		switch b := b.(type) {
		case *declcfg.Package:
			at(b.Name).DefaultChannel = b.DefaultChannel
		case *declcfg.Bundle:
			p := at(b.Package)
			p.Bundles = append(p.Bundles, bundleOf(b))
		}
	}
	var out []sbom.Package
	for _, p := range byName {
		slices.SortFunc(p.Bundles, compareBundles)
		out = append(out, *p)
	}
	slices.SortFunc(out, func(x, y sbom.Package) int { return cmp.Compare(x.Name, y.Name) })
	return out, nil
}

func bundleOf(b *declcfg.Bundle) sbom.Bundle {
	out := sbom.Bundle{Name: b.Name, Image: imageReference("", b.Image)}
	// A bundle without a valid version is listed without one: it is in the image anyway.
	if v, err := b.PackageProperty(); err == nil {
		out.Version = v.Version
	}
	for _, r := range b.RelatedImages {
		if r.Image != "" {
			out.Related = append(out.Related, imageReference(r.Name, r.Image))
		}
	}
	return out
}

func compareBundles(x, y sbom.Bundle) int {
	return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Image.Text, y.Image.Text))
}

// merged returns the packages of two catalogs. Bundles of the same name and image are one.
func merged(x, y []sbom.Package) []sbom.Package {
	if len(x) > 0 && len(x) == len(y) && &x[0] == &y[0] {
		return x // the catalog of several platforms
	}
	byName := map[string]sbom.Package{}
	for _, list := range [][]sbom.Package{x, y} {
		for _, p := range list {
			all, ok := byName[p.Name]
			if !ok {
				byName[p.Name] = p
				continue
			}
			all.Bundles = slices.Concat(all.Bundles, p.Bundles)
			slices.SortStableFunc(all.Bundles, compareBundles)
			all.Bundles = slices.CompactFunc(all.Bundles,
				func(x, y sbom.Bundle) bool { return compareBundles(x, y) == 0 })
			byName[p.Name] = all
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(x, y sbom.Package) int { return cmp.Compare(x.Name, y.Name) })
}
