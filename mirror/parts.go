package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// catalogsPart is the part of a divided image set with its catalogs.
const catalogsPart = "catalogs"

// divided tells whether this run writes a part of what several archives hold together. Such a part leaves out only what
// an inventory has: each can be written again, and by another machine.
func (r *run) divided() bool { return r.o.Shard.Count > 0 || r.o.PublishOnly }

// partName identifies the part of a divided image set; empty for all of it.
func (r *run) partName() string {
	switch {
	case r.o.PublishOnly:
		return catalogsPart
	case r.o.Shard.Count > 0:
		return r.o.Shard.String()
	}
	return ""
}

// partIsThere tells whether the archive of this shard is complete already, from a run that ended without saying so.
func (r *run) partIsThere(ctx context.Context, list []*item) (there bool, err error) {
	if r.o.Shard.Count == 0 {
		return false, nil
	}
	reader, err := medium.Open(ctx, r.o.Archive, medium.ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.ErrIntegrity) || errors.Is(err, fault.ErrInvalid) {
		return false, nil // it is written, or cannot be kept
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	// There are several if the run was repeated: what the first one lacked is in a later one.
	parts := reader.Parts()
	other := func(c *medium.Contents) bool { return c.Key != r.mediumKey(r.partName()) }
	if len(parts) == 0 || slices.ContainsFunc(parts, other) || len(parts[len(parts)-1].Lacking) > 0 {
		return false, nil
	}
	of := map[string]bool{}
	for _, p := range parts {
		for _, i := range p.Images {
			of[i.Source] = true
		}
	}
	mine, err := r.shardOf(ctx, slices.Clone(list))
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(mine, func(i *item) bool { return i.account.Status != Blocked && !of[i.source.String()] }) {
		r.items.list = list
		return false, nil // an image that could not be read then, and can be now, has changed the division
	}
	for _, i := range mine {
		if demanded, err := r.demands(ctx, i.source); err != nil {
			return false, err
		} else if demanded {
			r.items.list = list
			return false, nil // each source is judged, and what is refused is not in the archive
		}
	}
	for _, i := range mine {
		if i.account.Status != Blocked {
			i.account.Status = Present
		}
	}
	r.log.info("the archive of this part is there")
	return true, r.writeResults(ctx)
}

// addMissing copies the images that no part has to the archive of the catalogs. Runs of shards that could not read the
// same manifests divide the images differently: some are then in no part.
func (r *run) addMissing(ctx context.Context, list []*item) error {
	var missing []*item
	for _, i := range list {
		if i.account.Status == Failed {
			i.account.Status, i.account.Error = Skipped, ""
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	r.log.info(fmt.Sprintf("%d images are in no part, and are copied to the archive of the catalogs", len(missing)))
	for kind := range slices.Values([]Kind{Related, Additional, Bundle}) {
		of := slices.DeleteFunc(slices.Clone(missing), func(i *item) bool { return i.kind != kind })
		if err := r.transferAll(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

// openParts opens the archives of all shards. It is an error if one is missing, or is of something else: the catalogs
// would lose their bundles.
func (r *run) openParts(ctx context.Context) (_ *medium.Reader, err error) {
	reader, err := medium.Open(ctx, r.o.Parts, medium.ReadOptions{})
	if err != nil {
		return nil, err
	}
	if err := r.checkParts(reader.Parts()); err != nil {
		return nil, errors.Join(fmt.Errorf("archives in %s: %w", r.o.Parts, err), reader.Close())
	}
	return reader, nil
}

// checkParts looks whether there is exactly one archive of each part of this image set.
func (r *run) checkParts(parts []*medium.Contents) error {
	if len(parts) == 0 {
		return fmt.Errorf("%w: none is of a run with a shard", fault.ErrInvalid)
	}
	count, seen := 0, map[int]bool{}
	for _, p := range parts {
		s, err := ParseShard(p.Part)
		if err != nil {
			return fmt.Errorf("%w: %w", fault.ErrInvalid, err)
		}
		if count == 0 {
			count = s.Count
		}
		if s.Count != count {
			return fmt.Errorf("%w: part %s is beside one of %d parts: remove what is of another run", fault.ErrInvalid, s,
				count)
		}
		if p.Key != r.mediumKey(p.Part) {
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
	*medium.ReaderRepository
	reader *medium.Reader
}

func (l *listedRepository) HasBlob(_ context.Context, d v1.Descriptor) (bool, error) {
	return l.reader.Has(d.Digest), nil
}
