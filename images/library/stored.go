//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package library

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/internal/imagestore"
	"github.com/operator-bindery/bindery/images/internal/libimage"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/platform"
)

// openStored opens an image in a store. The library takes another place than the system's for temporary files.
func openStored(ctx context.Context, path, name string, o transport.Options) (*transport.Place, error) {
	return imagestore.OpenSource(ctx, imagestore.Name{Place: path, Image: name}, o.Private)
}

// holdStore opens the store at a place.
func holdStore(ctx context.Context, path string) (release func() error, err error) {
	held, err := imagestore.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}

// fillStore writes an image into a store, without its name.
func fillStore(ctx context.Context, path, name string, c transport.Content) (_ *transport.Filled, err error) {
	top, config, err := findStorable(ctx, c)
	if err != nil {
		return nil, err
	}
	out, err := imagestore.NewOutput(ctx, imagestore.Name{Place: path, Image: name}, config)
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
	filled, err := libimage.Copy(ctx, to, c.From, top, c.Private, false, c.Event)
	if err != nil {
		return nil, err
	}
	filled.Commit, filled.Discard = out.Commit, out.Discard
	return filled, nil
}

// findStorable returns the image, or the one image of an index that a store receives, and its configuration.
func findStorable(ctx context.Context, c transport.Content) (top v1.Descriptor, config []byte, err error) {
	want, orAny := c.Platform, false
	if want.Architecture == "" {
		want, orAny = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, true
	}
	visit := func(ctx context.Context, n *store.Node) (err error) {
		if !manifest.MIMETypeIsMultiImage(n.Kind) {
			if n.Parts.Config == nil {
				return fmt.Errorf("manifest: %w: it has no configuration", fault.ErrInvalid)
			}
			top = n.Descriptor
			config, err = configuration(ctx, c.From, *n.Parts.Config)
			return err
		}
		chosen, err := store.Choose(n.Parts.Manifests, want, orAny)
		if err != nil {
			return err
		}
		n.Entries = []v1.Descriptor{chosen}
		of := "one platform"
		if chosen.Platform != nil {
			of = platform.Name(*chosen.Platform)
		}
		c.Event(store.Event{Kind: store.EventWarning,
			Err: fmt.Errorf("a store has the image of one platform, and gets that of %s", of)})
		return nil
	}
	err = store.Walk(ctx, store.Node{Descriptor: c.Top}, store.WalkOptions{Read: store.ReadFrom(c.From), Visit: visit})
	return top, config, err
}

func configuration(ctx context.Context, from store.Reader, d v1.Descriptor) (text []byte, err error) {
	if d.Size > limit.MaxManifest {
		return nil, fmt.Errorf("configuration: %w: %d bytes (limit %d)", fault.ErrLimit, d.Size, limit.MaxManifest)
	}
	r, err := from.Blob(ctx, d, 0)
	if err != nil {
		return nil, err
	}
	text, err = io.ReadAll(r)
	return text, errors.Join(err, r.Close())
}
