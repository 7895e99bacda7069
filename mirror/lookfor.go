package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/stock"
)

// findAll looks whether the images are at the target, or in the archives of all shards: what other runs have copied is
// not known here. Images that are in no archive are copied to that of the catalogs. More is how many steps of the
// progress come after the images.
func (r *run) findAll(ctx context.Context, list []*item, more int) (err error) {
	at, what := func(name string) (store.Reader, error) { return r.o.Remote.Repository(name) }, "at the target"
	leftOut := map[digest.Digest]bool{}
	if r.o.Mode == ToDisk {
		parts, failed := openParts(ctx, r.o)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, parts.Close()) }()
		for _, l := range parts.Contents().LeftOut {
			leftOut[l.Digest] = true
		}
		at = func(name string) (store.Reader, error) {
			return &listedRepository{parts.Repository(name), parts}, nil
		}
		what = "in the archives of the shards"
	}
	byName := map[string][]*item{}
	for _, i := range list {
		if i.account.Status != Blocked {
			name := i.destination.Repository() + ":" + i.destination.Tag
			byName[name] = append(byName[name], i)
		}
	}
	r.report.progress.add(func(e *Event) { e.AllImages = len(byName) + more })
	wanted := func(yield func(stock.Wanted) bool) {
		for _, i := range list {
			w := stock.Wanted{Repository: i.destination.Repository(), Name: i.destination.Tag, Digest: i.source.Digest,
				Platforms: i.platforms}
			if r.o.Sparse == store.SparseTrim {
				w.Digest = "" // an index that is cut to some platforms has another digest
			}
			if i.account.Status != Blocked && !yield(w) {
				return
			}
		}
	}
	_, err = stock.Check(ctx, at, wanted, stock.CheckOptions{ManifestsOnly: r.o.Mode != ToDisk, Jobs: max(r.o.ParallelImages, 8),
		Done: func(f stock.Finding) {
			for _, i := range byName[f.Repository+":"+f.Name] {
				i.account.Status, i.account.Digest = Present, f.Found
				if r.places.other.hasImage(i) {
					continue
				}
				var texts []string
				for _, p := range f.Problems {
					// Of an image with a digest the tag may be the list of what is attached to it, where the registry
					// has no API for that.
					moved := p.Kind == stock.WrongDigest && p.Err == nil && i.byDigest()
					if !moved && !(p.Kind != stock.WrongDigest && leftOut[p.Digest]) {
						texts = append(texts, p.Error())
					}
				}
				if len(texts) > 0 {
					i.fail(errors.New("not " + what + ": " + strings.Join(texts, "; ")))
				}
			}
			r.report.progress.add(func(e *Event) { e.Images++ })
		}})
	if err == nil {
		err = r.judgeFound(ctx, list)
	}
	switch {
	case err != nil:
		return err
	case r.o.Mode == ToDisk:
		return r.copyMissing(ctx, list)
	case r.o.OnMissing == "": // the run of a shard may not have ended
		return r.markPending(ctx, list)
	}
	return nil
}

// judgeFound asks the policy about the sources of the images that were found, and fails those that it refuses, or that
// are not what their source is.
func (r *run) judgeFound(ctx context.Context, list []*item) error {
	return guard.Each(ctx, r.o.ParallelImages, list, func(ctx context.Context, _ int, i *item) error {
		if i.account.Status != Present {
			return nil
		}
		demanded, err := r.o.policyDemands(ctx, i.source)
		if err != nil {
			return err
		}
		if demanded {
			if err := r.judgeOne(ctx, i); err != nil {
				i.fail(err)
			}
		}
		return context.Cause(ctx)
	})
}

// judgeOne returns an error unless the policy accepts the source of an image that was found, and the image is that of
// its source, or an index of some of its entries.
func (r *run) judgeOne(ctx context.Context, i *item) (err error) {
	from, err := openSource(ctx, r.places.from, i)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	if r.o.Mode != ToDisk {
		to, err := r.places.to.repository(i.destination)
		if err == nil {
			err = checkOtherEntries(ctx, i, from, to)
		}
		if err != nil {
			return err
		}
	}
	if i.account.Digest == from.top.Digest || i.byDigest() && i.source.Digest == from.top.Digest {
		return nil
	}
	other := fmt.Errorf("the target has %s, and the source %s: run \"mirror run\" again", i.account.Digest,
		from.top.Digest)
	if r.o.Sparse != store.SparseTrim || r.o.Mode == ToDisk {
		return other
	}
	to, err := r.places.to.repository(i.destination)
	if err != nil {
		return err
	}
	found, err := store.ReadImage(ctx, to, v1.Descriptor{Digest: i.account.Digest,
		MediaType: v1.MediaTypeImageIndex})
	if err != nil || len(found.Instances) == 0 {
		return errors.Join(other, err)
	}
	source, err := from.judged.Entries(ctx)
	if err != nil {
		return err
	}
	for _, d := range found.Instances {
		if !slices.ContainsFunc(source.Instances, func(s v1.Descriptor) bool { return s.Digest == d.Digest }) {
			return other
		}
	}
	return nil
}

// markPending finds out which of the images that are not at the target their sources have: a run that has not ended
// copies them, and their bundles are not to be left out.
func (r *run) markPending(ctx context.Context, list []*item) error {
	return guard.Each(ctx, r.o.ParallelImages, list, func(ctx context.Context, _ int, i *item) error {
		if i.account.Status != Failed || i.kind == Additional {
			return nil
		}
		if from, err := r.places.from.open(ctx, i); err == nil {
			i.pending = true
			return from.close()
		}
		return context.Cause(ctx)
	})
}

// copyMissing copies the images that no part has to the archive of the catalogs. Runs of shards that could not read the
// same manifests divide the images differently: some are then in no part.
func (r *run) copyMissing(ctx context.Context, list []*item) error {
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
	r.report.log.info(fmt.Sprintf("%d images are in no part, and are copied to the archive of the catalogs", len(missing)))
	for kind := range slices.Values(kinds) {
		of := slices.DeleteFunc(slices.Clone(missing), func(i *item) bool { return i.kind != kind })
		if err := r.copyKind(ctx, of); err != nil {
			return err
		}
	}
	return nil
}
