//go:build linux && !nobuildah

package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	transport "go.podman.io/image/v5/storage"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/transfer"
	"github.com/operator-bindery/bindery/internal/verify"
)

// storedImage is an image that is complete in a store and gets its name there at the end: until then the name stands for what it
// stood for.
type storedImage struct {
	dest  Destination
	store *heldStore
	id    string
	// added is removed again where the name is not given; the stage has it for the next run if this one is killed.
	added journal
	stage *layouts.Stage
	done  bool
}

// prepareStored writes the image into a store, without its name.
func (c *copier) prepareStored(ctx context.Context, d Destination, r *Result) (_ prepared, err error) {
	out := &storedImage{dest: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Discard())
		}
	}()
	if out.store, err = holdStore(ctx, d.Path); err != nil {
		return nil, err
	}
	from, config, err := c.storable(ctx, d)
	if err != nil {
		return nil, err
	}
	reclaim(out.store)
	if out.id, err = out.look(config); err != nil {
		return nil, err
	}
	if out.stage, err = layouts.NewStage(ctx, out.store.GraphRoot()); err != nil {
		return nil, err
	}
	if err := out.added.write(out.stage); err != nil {
		return nil, err
	}
	to, err := transport.Transport.NewStoreReference(out.store.Store, nil, out.id)
	if err != nil {
		return nil, err
	}
	one := *c
	one.src = from
	return out, one.copyTo(ctx, d, to, r)
}

// storable is the image, or the one that a store can hold of several: that for the platform wanted, else for this machine.
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
			return nil, nil, fmt.Errorf("%w: indexes in indexes, more than %d deep", fault.ErrLimit, limit.MaxIndexDepth)
		}
		text, kind, err := src.GetManifest(ctx, instance)
		if err != nil {
			return nil, nil, err
		}
		if kind, err = manifestKind(text, kind); err != nil {
			return nil, nil, err
		}
		if !manifest.MIMETypeIsMultiImage(kind) {
			var m v1.Manifest
			if err := json.Unmarshal(text, &m); err != nil {
				return nil, nil, fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
			}
			config, err := readSmall(ctx, src, m.Config)
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
		c.event(transfer.Event{Kind: transfer.EventWarning, Destination: d.String(), Err: fmt.Errorf("a store has the image of one platform, and gets that of %s", platform)})
	}
}

// readSmall reads a configuration and checks its digest.
func readSmall(ctx context.Context, src types.ImageSource, d v1.Descriptor) (_ []byte, err error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if d.Size < 0 || d.Size > limit.MaxManifest {
		return nil, fmt.Errorf("configuration: %w: size %d (limit %d)", fault.ErrLimit, d.Size, limit.MaxManifest)
	}
	r, _, err := src.GetBlob(ctx, types.BlobInfo{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType}, none.NoCache)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return io.ReadAll(verify.NewReader(r, d.Digest, d.Size))
}

// look finds out what of the image is in the store already, and the identity that it has there: the digest of its configuration.
func (out *storedImage) look(config []byte) (id string, err error) {
	var image v1.Image
	if err := json.Unmarshal(config, &image); err != nil {
		return "", fmt.Errorf("%w: configuration: %v", fault.ErrInvalid, err)
	}
	for _, chain := range chainIDs(image.RootFS.DiffIDs) {
		switch _, err := out.store.Layer(chain); {
		case err == nil:
		case errors.Is(err, storage.ErrLayerUnknown):
			out.added.Layers = append(out.added.Layers, chain)
		default:
			return "", err
		}
	}
	id = digest.FromBytes(config).Encoded()
	_, err = out.store.Image(id)
	if errors.Is(err, storage.ErrImageUnknown) {
		out.added.Image, err = id, nil
	}
	return id, err
}

// chainIDs are the identities of layers in stores: that of each tells what is below it (image specification, "Layer ChainID",
// without the name of the algorithm).
func chainIDs(diffIDs []digest.Digest) []string {
	var ids []string
	for i, d := range diffIDs {
		id := d.Encoded()
		if i > 0 {
			id = digest.FromString(ids[i-1] + "+" + id).Encoded()
		}
		ids = append(ids, id)
	}
	return ids
}

// Commit gives the image its name, in one step: what had it before has it no more.
func (out *storedImage) Commit(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	name, err := storeTag(out.dest.Name)
	if err != nil {
		return err
	}
	if err := out.store.AddNames(out.id, []string{name.String()}); err != nil {
		return err
	}
	out.done = true
	return nil
}

// discard removes what nobody uses and was not there before, unless the image has its name, and closes the store.
func (out *storedImage) Discard() error {
	if out.store == nil {
		return nil
	}
	if !out.done {
		out.added.remove(out.store)
	}
	var err error
	if out.stage != nil {
		err = out.stage.Close()
	}
	return errors.Join(err, out.store.release())
}

// instanceReference is one image of an index, as if it were alone.
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
