package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/limit"
)

// fillStore writes the image into a store, without its name.
func (c *copier) fillStore(ctx context.Context, e *edge) (_ prepared, err error) {
	top, config, err := c.storable(ctx, e.d)
	if err != nil {
		return nil, err
	}
	out, err := imagestore.NewOutput(ctx, imagestore.Name{Place: e.d.Path, Image: e.d.Name}, config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Discard())
		}
	}()
	to, err := out.Reference()
	if err != nil {
		return nil, err
	}
	return out, c.copyTo(ctx, e, top, to)
}

// storable returns the image, or the one image of an index that the store receives, and its configuration.
func (c *copier) storable(ctx context.Context, d Destination) (top v1.Descriptor, config []byte, err error) {
	want, orAny := c.o.Platform, false
	if want.Architecture == "" {
		want, orAny = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, true
	}
	visit := func(ctx context.Context, n *store.Node) (err error) {
		if !manifest.MIMETypeIsMultiImage(n.Kind) {
			if n.Parts.Config == nil {
				return fmt.Errorf("manifest: %w: it has no configuration", fault.ErrInvalid)
			}
			top = n.Descriptor
			config, err = c.configuration(ctx, *n.Parts.Config)
			return err
		}
		chosen, err := choose(n.Text, want, orAny)
		if err != nil {
			return err
		}
		n.Entries = []v1.Descriptor{chosen}
		platform := "one platform"
		if chosen.Platform != nil {
			platform = chosen.Platform.OS + "/" + chosen.Platform.Architecture
		}
		c.event(store.Event{Kind: store.EventWarning, Destination: d.String(),
			Err: fmt.Errorf("a store has the image of one platform, and gets that of %s", platform)})
		return nil
	}
	err = store.Walk(ctx, store.Node{Descriptor: c.top}, store.WalkOptions{Read: store.ReadFrom(c.from), Visit: visit})
	return top, config, err
}

// configuration reads a configuration.
func (c *copier) configuration(ctx context.Context, d v1.Descriptor) (text []byte, err error) {
	if d.Size > limit.MaxManifest {
		return nil, fmt.Errorf("configuration: %w: %d bytes (limit %d)", fault.ErrLimit, d.Size, limit.MaxManifest)
	}
	r, err := c.from.Blob(ctx, d, 0)
	if err != nil {
		return nil, err
	}
	text, err = io.ReadAll(r)
	return text, errors.Join(err, r.Close())
}
