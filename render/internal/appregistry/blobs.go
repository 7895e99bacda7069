package appregistry

import (
	"context"
	"fmt"
	"iter"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// Blobs yields the catalog in writing order, with the manifests of its bundles. Bundles have an image only if
// [Options.Image] is set, as in an index database that opm builds from the same directory. One bundle is in memory at a
// time. The iteration ends after the first error; it can be repeated.
func (t *Tree) Blobs(ctx context.Context) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		for _, p := range t.packages {
			if !yield(&p.skeleton.Packages[0], nil) {
				return
			}
			for i := range p.skeleton.Channels {
				if !yield(&p.skeleton.Channels[i], nil) {
					return
				}
			}
			n := 0
			for b, err := range t.bundles(ctx, p) {
				var blob *declcfg.Bundle
				if err == nil {
					blob, err = t.blob(b)
				}
				if err != nil {
					yield(nil, err)
					return
				}
				blob.Pos = p.files[n].Position
				n++
				if !yield(blob, nil) {
					return
				}
			}
		}
	}
}

// Bundles yields the bundles by package and name in the form that bundle directories give: each names its channels and
// the default channel of its package. The iteration ends after the first error.
func (t *Tree) Bundles(ctx context.Context) iter.Seq2[*bundle.Bundle, error] {
	return func(yield func(*bundle.Bundle, error) bool) {
		for _, p := range t.packages {
			for b, err := range t.bundles(ctx, p) {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

func (t *Tree) bundles(ctx context.Context, p *pkg) iter.Seq2[*bundle.Bundle, error] {
	return func(yield func(*bundle.Bundle, error) bool) {
		for _, c := range p.files {
			b, err := t.read(ctx, p, c, nil)
			if err != nil {
				err = fmt.Errorf("%s: %w", c.File, err)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}
