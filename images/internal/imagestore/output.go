//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	transport "go.podman.io/image/v5/storage"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Output is an image that is written to a store. It is complete before it gets its name, so that the name always refers
// to the old or the new image.
type Output struct {
	name  Name
	store *Store
	id    string
	// added is removed again by Discard, or by the next run, which finds it in the stage.
	added journal
	stage *layouts.Stage
	done  bool
}

// NewOutput opens the store for an image with a configuration. The caller copies the image to the output's reference,
// then calls Commit, and Discard in any case.
func NewOutput(ctx context.Context, n Name, config []byte) (_ *Output, err error) {
	out := &Output{name: n}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Discard())
		}
	}()
	if out.store, err = Open(ctx, n.Place); err != nil {
		return nil, err
	}
	reclaim(out.store)
	if out.id, err = out.findMissing(config); err != nil {
		return nil, err
	}
	if out.stage, err = layouts.NewStage(ctx, out.store.GraphRoot()); err != nil {
		return nil, err
	}
	return out, out.added.write(out.stage)
}

// Reference returns where to copy the image.
func (out *Output) Reference() (types.ImageReference, error) {
	return transport.Transport.NewStoreReference(out.store.Store, nil, out.id)
}

// findMissing finds out which parts of the image are not in the store. It returns the ID of the image there: the digest
// of its configuration.
func (out *Output) findMissing(config []byte) (id string, err error) {
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

// chainIDs returns the IDs of layers in stores: those of the image specification, "Layer ChainID", without the name of
// the algorithm.
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

// Commit gives the image its name, in one step. The image that had it before loses it.
func (out *Output) Commit(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	name, err := Tag(out.name.Image)
	if err != nil {
		return err
	}
	if err := out.store.AddNames(out.id, []string{name.String()}); err != nil {
		return err
	}
	out.done = true
	return nil
}

// Discard removes what was added, unless the image has its name, and closes the store.
func (out *Output) Discard() error {
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
	return errors.Join(err, out.store.Release())
}
