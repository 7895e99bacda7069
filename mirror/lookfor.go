package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/stock"
)

// lookFor looks whether the images are at the target, or in the archives of all shards, and copies none: what other
// runs have copied is not known here.
func (r *run) lookFor(ctx context.Context, list []*item) (err error) {
	at, what := func(name string) (store.Reader, error) { return r.o.Remote.Repository(name) }, "at the target"
	leftOut := map[digest.Digest]bool{}
	if r.o.Mode == ToDisk {
		parts, failed := r.openParts(ctx)
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
	r.progress.add(func(e *Event) { e.AllImages = len(byName) + r.toPublish() })
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
	_, err = stock.Check(ctx, at, wanted, stock.CheckOptions{ManifestsOnly: r.o.Mode != ToDisk, Jobs: max(r.o.Jobs, 8),
		Done: func(f stock.Finding) {
			for _, i := range byName[f.Repository+":"+f.Name] {
				i.account.Status, i.account.Digest = Present, f.Found
				if r.known(i) {
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
			r.progress.add(func(e *Event) { e.Images++ })
		}})
	if err == nil {
		err = r.judgeFound(ctx, list)
	}
	switch {
	case err != nil:
		return err
	case r.o.Mode == ToDisk:
		return r.addMissing(ctx, list)
	case r.unfinished:
		return r.lookAtSources(ctx, list)
	}
	return nil
}

// judgeFound asks the policy about the sources of the images that were found, and fails those that it refuses, or that
// are not what their source is.
func (r *run) judgeFound(ctx context.Context, list []*item) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.o.Jobs)
	for _, i := range list {
		if i.account.Status != Present {
			continue
		}
		g.Go(func() error {
			demanded, err := r.demands(gctx, i.source)
			if err != nil {
				return err
			}
			if demanded {
				if err := r.judgeOne(gctx, i); err != nil {
					i.fail(err)
				}
			}
			return context.Cause(gctx)
		})
	}
	return g.Wait()
}

// judgeOne returns an error unless the policy accepts the source of an image that was found, and the image is that of
// its source, or an index of some of its entries.
func (r *run) judgeOne(ctx context.Context, i *item) (err error) {
	from, err := r.openJudged(ctx, i)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	if r.o.Mode != ToDisk {
		to, err := r.to.repository(i.destination)
		if err == nil {
			err = checkThere(ctx, i, from, to)
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
	to, err := r.to.repository(i.destination)
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

// lookAtSources finds out which of the images that are not at the target their sources have: a run that has not ended
// copies them, and their bundles are not to be left out.
func (r *run) lookAtSources(ctx context.Context, list []*item) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.o.Jobs)
	for _, i := range list {
		if i.account.Status != Failed || i.kind == Additional {
			continue
		}
		g.Go(func() error {
			if from, err := r.from.open(gctx, i); err == nil {
				i.waiting = true
				return from.close()
			}
			return context.Cause(ctx)
		})
	}
	return g.Wait()
}

// waiting counts the images of a catalog that are not at the target and that their sources have.
func (c *catalog) waiting() int {
	found := map[*item]bool{}
	for n := range c.bundles {
		for _, i := range c.bundles[n].images {
			if i.waiting {
				found[i] = true
			}
		}
	}
	return len(found)
}
