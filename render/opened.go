package render

import (
	"context"
	"iter"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
)

// ReadBundle reads the bundle in an open image.
func (o Options) ReadBundle(ctx context.Context, img *images.Image) (*bundle.Bundle, error) {
	return readBundleImage(ctx, img, &o)
}

// ReadDatabase yields the blobs of the index database name in an open image, without validating more than
// [Options.Render] does. The blobs can be iterated over once.
func (o Options) ReadDatabase(ctx context.Context, img *images.Image, name string) iter.Seq2[declcfg.Blob, error] {
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
