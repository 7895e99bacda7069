package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/internal/shards"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// partIsComplete tells whether the archive of this shard is complete already, from a run that ended without saying so.
// The images of the collection are then those of the shard.
func partIsComplete(ctx context.Context, o *Options, from origin, found *collection) (complete bool, err error) {
	list := slices.Clone(found.items.list) // keepShard changes it in place
	if o.Shard.Count == 0 {
		return false, nil
	}
	reader, err := medium.Open(ctx, o.Archive)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.ErrIntegrity) || errors.Is(err, fault.ErrInvalid) {
		return false, nil // there is no archive yet, or a damaged one that is written again
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	// There are several if the run was repeated: what the first one lacked is in a later one.
	parts := reader.Parts()
	other := func(c *medium.Contents) bool { return c.Key != o.archiveKey(o.partName()) }
	if len(parts) == 0 || slices.ContainsFunc(parts, other) || len(parts[len(parts)-1].Lacking) > 0 {
		return false, nil
	}
	of := map[string]bool{}
	for _, p := range parts {
		for _, i := range p.Images {
			of[i.Source] = true
		}
	}
	mine, err := found.keepShard(ctx, o, from)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(mine, func(i *item) bool { return i.account.Status != Blocked && !of[i.source.String()] }) {
		found.items.list = list
		return false, nil // an image that could not be read then, and can be now, has changed the division
	}
	for _, i := range mine {
		if demanded, err := o.policyDemands(ctx, i.source); err != nil {
			return false, err
		} else if demanded {
			found.items.list = list
			return false, nil // each source is judged, and what is refused is not in the archive
		}
	}
	for _, i := range mine {
		if i.account.Status != Blocked {
			i.account.Status = Present
		}
	}
	return true, nil
}

// openParts opens the archives of all shards. It is an error if one is missing, or is of something else: the catalogs
// would lose their bundles.
func openParts(ctx context.Context, o *Options) (_ *medium.Reader, err error) {
	reader, err := medium.Open(ctx, o.Parts)
	if err != nil {
		return nil, err
	}
	if err := checkParts(o, reader.Parts()); err != nil {
		return nil, errors.Join(fmt.Errorf("archives in %s: %w", o.Parts, err), reader.Close())
	}
	return reader, nil
}

// checkParts looks whether there is exactly one archive of each part of this image set.
func checkParts(o *Options, parts []*medium.Contents) error {
	if len(parts) == 0 {
		return fmt.Errorf("%w: none is of a run with a shard", fault.ErrInvalid)
	}
	count, seen := 0, map[int]bool{}
	for _, p := range parts {
		s, err := ParseShard(p.Part)
		if err != nil {
			return fmt.Errorf("%w: %w", fault.ErrInvalid, err)
		}
		count = cmp.Or(count, s.Count)
		if s.Count != count {
			return fmt.Errorf("%w: part %s is beside one of %d parts: remove what is of another run", fault.ErrInvalid, s,
				count)
		}
		if p.Key != o.archiveKey(p.Part) {
			return fmt.Errorf("%w: part %s is of another image set, of other catalogs or of a run with other flags: "+
				"write it again", fault.ErrInvalid, s)
		}
		seen[s.Index] = true
	}
	for i := range count {
		if !seen[i+1] {
			return fmt.Errorf("%w: part %s is missing", fault.ErrInvalid, Shard{i + 1, count})
		}
	}
	return nil
}

// listedRepository is a repository on a medium whose blobs count as there if the medium lists them.
type listedRepository struct {
	store.Reader
	reader *medium.Reader
}

func (l *listedRepository) HasBlob(_ context.Context, d v1.Descriptor) (bool, error) {
	return l.reader.Has(d.Digest), nil
}

// keepShard leaves the images of this run's shard in the collection, and returns them. Every run of the same image set
// divides the images in the same way, without talking to others: by their layers, so that what images share is copied
// by one run.
func (f *collection) keepShard(ctx context.Context, o *Options, from origin) ([]*item, error) {
	if o.Shard.Count > 0 { // release images come after all that they name, in "mirror publish"
		f.items.list = slices.DeleteFunc(f.items.list, func(i *item) bool { return i.kind == Release })
	}
	list := f.items.list
	if o.Shard.Count <= 1 {
		return list, nil
	}
	parts := make([][]v1.Descriptor, len(list))
	err := guard.Each(ctx, max(o.ParallelImages, 8), list, func(ctx context.Context, n int, i *item) error {
		parts[n] = layersOf(ctx, from, i)
		return context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	of := shards.Divide(parts, o.Shard.Count)
	var mine []*item
	for n, i := range list {
		if of[n] == o.Shard.Index-1 {
			mine = append(mine, i)
		}
	}
	f.items.list = mine
	return mine, nil
}

// layersOf returns the layers of an image and of the entries of an index. An image that cannot be read has none: the
// run that it falls to reports it.
func layersOf(ctx context.Context, origin origin, i *item) []v1.Descriptor {
	from, err := origin.open(ctx, i)
	if err != nil {
		return nil
	}
	defer from.close()
	image, err := store.ReadImage(ctx, from.Reader, from.top)
	if err != nil {
		return nil
	}
	var out []v1.Descriptor
	for _, d := range image.Subjects() {
		text, _, err := from.Manifest(ctx, d.Digest.String())
		if errors.Is(err, context.Canceled) {
			return nil
		}
		var m v1.Manifest
		if err != nil || json.Unmarshal(text, &m) != nil {
			continue
		}
		out = append(out, m.Layers...)
	}
	return out
}
