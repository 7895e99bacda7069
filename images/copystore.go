package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/transfer"
	"github.com/operator-bindery/bindery/internal/verify"
)

// prepareStored writes the image into a store, without its name.
func (c *copier) prepareStored(ctx context.Context, d Destination, r *Result) (_ prepared, err error) {
	from, config, err := c.storable(ctx, d)
	if err != nil {
		return nil, err
	}
	out, err := imagestore.NewOutput(ctx, imagestore.Name{Place: d.Path, Image: d.Name}, config)
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
	one := *c
	one.src = from
	return out, one.copyTo(ctx, d, to, r)
}

// storable returns the image, or the one image of an index that the store receives, and its configuration.
func (c *copier) storable(ctx context.Context, d Destination) (_ types.ImageReference, config []byte, err error) {
	src, err := c.src.NewImageSource(ctx, c.sys)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	want, orAny := c.o.Platform, false
	if want.Architecture == "" {
		want, orAny = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, true
	}
	ref := c.src
	var instance *digest.Digest
	for depth := 0; ; depth++ {
		if depth > limit.MaxIndexDepth {
			return nil, nil, fmt.Errorf("%w: indexes in indexes, more than %d deep", fault.ErrLimit,
				limit.MaxIndexDepth)
		}
		text, kind, err := src.GetManifest(ctx, instance)
		if err != nil {
			return nil, nil, err
		}
		if kind, err = verify.ManifestKind(text, kind); err != nil {
			return nil, nil, err
		}
		if !manifest.MIMETypeIsMultiImage(kind) {
			var m v1.Manifest
			if err := json.Unmarshal(text, &m); err != nil {
				return nil, nil, fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
			}
			config, err := verify.ReadConfig(ctx, src, m.Config)
			return ref, config, err
		}
		chosen, err := choose(text, want, orAny)
		if err != nil {
			return nil, nil, err
		}
		instance = &chosen.Digest
		ref = &instanceReference{ImageReference: c.src, instance: chosen.Digest}
		platform := "one platform"
		if chosen.Platform != nil {
			platform = chosen.Platform.OS + "/" + chosen.Platform.Architecture
		}
		c.event(transfer.Event{Kind: transfer.EventWarning, Destination: d.String(),
			Err: fmt.Errorf("a store has the image of one platform, and gets that of %s", platform)})
	}
}

// instanceReference refers to one image of an index.
type instanceReference struct {
	types.ImageReference
	instance digest.Digest
}

func (r *instanceReference) NewImageSource(ctx context.Context, sys *types.SystemContext) (types.ImageSource, error) {
	src, err := r.ImageReference.NewImageSource(ctx, sys)
	if err != nil {
		return nil, err
	}
	return &instanceSource{src, r}, nil
}

type instanceSource struct {
	types.ImageSource
	ref *instanceReference
}

func (s *instanceSource) Reference() types.ImageReference { return s.ref }

func (s *instanceSource) instance(d *digest.Digest) *digest.Digest {
	if d == nil {
		return &s.ref.instance
	}
	return d
}

func (s *instanceSource) GetManifest(ctx context.Context, d *digest.Digest) ([]byte, string, error) {
	return s.ImageSource.GetManifest(ctx, s.instance(d))
}

func (s *instanceSource) GetSignatures(ctx context.Context, d *digest.Digest) ([][]byte, error) {
	return s.ImageSource.GetSignatures(ctx, s.instance(d))
}

func (s *instanceSource) LayerInfosForCopy(ctx context.Context, d *digest.Digest) ([]types.BlobInfo, error) {
	return s.ImageSource.LayerInfosForCopy(ctx, s.instance(d))
}
