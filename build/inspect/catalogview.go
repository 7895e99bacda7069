package inspect

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/operator-bindery/bindery/images"
)

// CatalogView is what catalogd makes of the files of a catalog image, as far as their names and kinds say it.
type CatalogView struct {
	// Differences are the files that catalogd shows and container engines do not, or the reverse.
	Differences []fileDifference
	// Irregular are the links, devices and other files of the catalog that are neither regular nor directories.
	Irregular []irregularFile
}

// fileDifference is a file of the catalog of which catalogd and container engines see something else.
type fileDifference struct{ File, Message string }

// irregularFile is a file of a kind, as in archive/tar.
type irregularFile struct {
	File string
	Kind byte
}

// ViewCatalog reads the layers of an image and compares what catalogd unpacks of the catalog's directory, relative to
// the root, with what container engines show. Errors are those of reading the layers.
func ViewCatalog(ctx context.Context, img *images.Image, dir string, l images.Limits) (*CatalogView, error) {
	r := images.NewLayerReader(l)
	var of []*facts
	for n := range img.Layers {
		f := &facts{digest: img.Layers[n].Digest}
		_, err := r.Read(ctx, img, n, func(name string, h *tar.Header, _ io.Reader) error {
			e := entry{name: name, kind: h.Typeflag}
			hidden, _, whiteout := e.hidden()
			if dir == "." || name == dir || strings.HasPrefix(name, dir+"/") || strings.HasPrefix(dir+"/", name+"/") ||
				whiteout && (hidden == "" || strings.HasPrefix(dir+"/", hidden+"/")) {
				f.entries = append(f.entries, e)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("image %q: %w", img.Name, err)
		}
		of = append(of, f)
	}
	out := &CatalogView{}
	if dir == "." {
		return out, nil // nothing is outside
	}
	compareViews(of, newView(of), dir, func(name, message string) {
		out.Differences = append(out.Differences, fileDifference{name, message})
	})
	newFilteredView(of, dir).walk(dir, func(name string, n *vnode) {
		if n.layer >= 0 && n.e.kind != tar.TypeDir && n.e.kind != tar.TypeReg {
			out.Irregular = append(out.Irregular, irregularFile{name, n.e.kind})
		}
	})
	return out, nil
}

// compareViews reports the files of which catalogd and container engines see something else. catalogd unpacks the
// catalog's directory only and so ignores whiteouts outside it.
func compareViews(of []*facts, v *view, dir string, report func(name, message string)) {
	digestOf := func(n *vnode) string {
		if n.layer < 0 {
			return "none"
		}
		return of[n.layer].digest.String()
	}
	unpacked := newFilteredView(of, dir)
	unpacked.walk(dir, func(name string, n *vnode) {
		switch shown := v.find(name); {
		case n.e.kind == tar.TypeDir:
		case shown == nil:
			report(name, fmt.Sprintf("OLM v1 shows it, and container engines do not: "+
				"catalogd drops whiteouts outside /%s; %s hides it in both", dir, dir+"/.wh..wh..opq"))
		case shown.layer != n.layer:
			report(name, fmt.Sprintf("OLM v1 takes it from the layer %s, and container engines from %s", digestOf(n),
				digestOf(shown)))
		}
	})
	v.walk(dir, func(name string, n *vnode) {
		if n.e.kind != tar.TypeDir && unpacked.find(name) == nil {
			report(name, "container engines show it, and OLM v1 does not: "+
				"a whiteout behind it in its own layer removes it in catalogd")
		}
	})
}
