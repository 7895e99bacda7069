package render

import (
	"context"
	"iter"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
)

// OpenedBundle reads the bundle in an open image.
func OpenedBundle(ctx context.Context, img *images.Image, o Options) (*bundle.Bundle, error) {
	return readBundleImage(ctx, img, &o)
}

// OpenedDatabase yields the blobs of the index database name in an open image, without validating more than
// [Reference] does. The blobs can be iterated over once.
func OpenedDatabase(ctx context.Context, img *images.Image, name string,
	o Options) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		o.account = &Account{}
		c, err := databaseImage(ctx, img, name, &o)
		if err != nil {
			yield(nil, err)
			return
		}
		for b, err := range c.blobs {
			if !yield(b, err) || err != nil {
				_ = c.done() // the content has been read, or a more important error is reported
				return
			}
		}
		if err := c.done(); err != nil {
			yield(nil, err)
		}
	}
}
