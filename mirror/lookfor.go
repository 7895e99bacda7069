package mirror

import (
	"context"
	"errors"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/mirror/stock"
)

// lookFor looks whether the images are at the target, or in the archives of all shards, and copies none: what other
// runs have copied is not known here.
func (r *run) lookFor(ctx context.Context, list []*item) (err error) {
	at, what := func(name string) (stock.Repository, error) { return r.o.Remote.Repository(name) }, "at the target"
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
		at = func(name string) (stock.Repository, error) {
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
			if r.o.Sparse == referrers.SparseTrim {
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
