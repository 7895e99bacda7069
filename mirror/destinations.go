package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/collisions"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// checkDestinations looks for what would go wrong later, before anything is written: images that fall together at the
// destination, and images that would replace a source or a catalog. It marks the images that are blocked, and returns all
// in the order in which they are copied.
func (r *run) checkDestinations(ctx context.Context) ([]*item, error) {
	list := r.found.items.sorted()
	return list, r.checkPlaces(ctx, list)
}

// checkPlaces checks the destinations of all images.
func (r *run) checkPlaces(ctx context.Context, list []*item) error {
	images, err := r.pairsOf(ctx, list)
	if err != nil {
		return err
	}
	var open []*catalog
	sources := slices.Clone(images)
	for _, c := range r.found.catalogs {
		if c.index != nil {
			open = append(open, c)
			sources = append(sources, c.sourcePairs()...)
		}
	}
	all := slices.Clone(images)
	for _, c := range open {
		rebuilt := r.catalogPair(c, true)
		if c.asIs {
			all = append(all, r.catalogPair(c, false))
			// It may be rebuilt after all, without bundles that lack images.
			c.onlyAsIs = errors.Join(r.conflicts(ctx, append([]collisions.Pair{rebuilt}, images...), sources)...)
		} else {
			all = append(all, rebuilt)
		}
	}
	errs := r.conflicts(ctx, all, sources)
	replaced, err := r.replacedCatalogs(ctx, list)
	if err != nil {
		return err
	}
	if errs = append(errs, replaced...); len(errs) > 0 {
		return errors.Join(errs...)
	}
	if len(list) == 0 && r.found.graph == nil {
		return errNoImages
	}
	return nil
}

// pairsOf returns what goes where, of the images that no rule blocks, which it marks. Images of one content that fall together share
// a tag.
func (r *run) pairsOf(ctx context.Context, list []*item) ([]collisions.Pair, error) {
	byPlace := map[string][]*item{}
	for _, i := range list {
		i.startAccount(r.report.moved)
		r.markBlocked(i)
		if i.account.Status != Blocked {
			byPlace[i.account.Destination] = append(byPlace[i.account.Destination], i)
		}
	}
	contents, err := r.resolveShared(ctx, byPlace)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if together := byPlace[i.account.Destination]; len(together) > 1 && together[0] == i {
			r.shareTag(ctx, together, contents)
		}
	}
	pairs := make([]collisions.Pair, 0, len(list))
	for _, i := range list {
		if i.account.Status != Blocked {
			pairs = append(pairs, collisions.Pair{Source: &i.source, Destination: &i.destination, Content: contents[i]})
		}
	}
	return pairs, nil
}

// sourcePairs are the images that a catalog is read from.
func (c *catalog) sourcePairs() []collisions.Pair {
	pairs := []collisions.Pair{{Source: &c.op.Catalog, Content: c.digest}}
	if c.readFrom != (imageset.Ref{}) {
		pairs = append(pairs, collisions.Pair{Source: &c.readFrom, Content: c.digest})
	}
	return pairs
}

// catalogPair says where a catalog goes, rebuilt or as it is.
func (r *run) catalogPair(c *catalog, rebuilt bool) collisions.Pair {
	to := r.o.destination().Catalog(c.op, rebuilt, "", c.account.FilterHash)
	pair := collisions.Pair{Source: &c.op.Catalog, Content: c.digest, Destination: &to}
	if rebuilt {
		pair.Content, pair.Made = c.rebuiltContent(), true
	}
	return pair
}

// markBlocked marks an image that a rule of the image set leaves out.
func (r *run) markBlocked(i *item) {
	rule, byDestination, blocked := r.o.Set.Blocked(i.source, "", i.destination, r.o.destination())
	if !blocked {
		return
	}
	i.account.Status = Blocked
	if byDestination {
		r.report.problem(filter.Warning, i.name(), "", "blocked, as %q matches its name at the destination", rule.Name)
	}
	if r.o.PruneBlocked {
		return
	}
	if i.ofRelease() {
		r.report.problem(filter.Warning, i.name(), "", "blocked, and release %s cannot be installed without it",
			i.release.account.Name())
	}
	for _, u := range i.users {
		r.report.problem(filter.Warning, i.name(), "--prune-blocked takes the bundle out of the catalog",
			"blocked, and bundle %s of package %s names it", u.bundle, u.pkg)
	}
}

// conflicts returns an error for each image that would be written over another one, or over a source.
func (r *run) conflicts(ctx context.Context, pairs, sources []collisions.Pair) (errs []error) {
	for _, c := range collisions.Find(pairs) {
		errs = append(errs, &c)
	}
	return append(errs, r.replacedSources(ctx, pairs, sources)...)
}

// resolveShared finds out the digests of images that share a destination with others. What cannot be found out is
// empty.
func (r *run) resolveShared(ctx context.Context,
	byPlace map[string][]*item) (map[*item]digest.Digest, error) {
	var shared []*item
	for _, together := range byPlace {
		if len(together) > 1 {
			shared = append(shared, together...)
		}
	}
	var mu sync.Mutex
	contents := map[*item]digest.Digest{}
	err := guard.Each(ctx, r.o.ParallelImages, shared, func(ctx context.Context, _ int, i *item) error {
		d := contentOf(ctx, r.places.from, i)
		mu.Lock()
		defer mu.Unlock()
		contents[i] = d
		return context.Cause(ctx)
	})
	return contents, err
}

// shareTag decides which of several images of one source repository gets the tag that they are named with: the image
// that the tag stands for at the source. The others are named with digests too, and get tags that are made of these.
func (r *run) shareTag(ctx context.Context, together []*item, contents map[*item]digest.Digest) {
	first := together[0]
	var tagged *item
	same := true
	for _, i := range together {
		if i.source.Repository() != first.source.Repository() || i.source.Tag != first.source.Tag ||
			i.source.Transport != first.source.Transport {
			return // names of different sources are not mended here
		}
		if i.ofRelease() {
			return // two releases of one name are an error
		}
		if i.source.Digest == "" {
			tagged = i
		}
		same = same && contents[i] == contents[first] && contents[i] != ""
	}
	if same || first.source.Tag == "" {
		return
	}
	var has digest.Digest
	if tagged != nil {
		has = contents[tagged]
	} else {
		has = contentOf(ctx, r.places.from, first.withTag())
	}
	for _, i := range together {
		if i == tagged || contents[i] == has && has != "" {
			continue
		}
		useDigestTag(r.report, i)
	}
}

// replacedSources returns an error for each image that would be written to the name of a source which has other
// content.
func (r *run) replacedSources(ctx context.Context, pairs, sources []collisions.Pair) (errs []error) {
	if r.o.Mode == ToDisk {
		return nil
	}
	destinations := map[string]bool{}
	for _, p := range pairs {
		destinations[p.Destination.PlainName()] = true
	}
	byName := map[string][]collisions.Pair{}
	for _, s := range sources {
		if s.Source.InRegistry() && s.Source.Tag != "" {
			if name := s.Source.PlainName(); destinations[name] {
				byName[name] = append(byName[name], s)
			}
		}
	}
	told := map[string]bool{}
	for _, p := range pairs {
		for _, s := range byName[p.Destination.PlainName()] {
			e := &replacedSourceError{Image: *p.Source, Source: *s.Source, Destination: *p.Destination}
			if told[e.Error()] || !r.replaces(ctx, p, s) {
				continue
			}
			told[e.Error()] = true
			errs = append(errs, e)
		}
	}
	return errs
}

// replacedCatalogs returns an error for each image that would be written over a catalog which an earlier run has
// published, and which is still there.
func (r *run) replacedCatalogs(ctx context.Context, list []*item) (errs []error, err error) {
	if r.o.Mode == ToDisk {
		return nil, nil
	}
	rec, err := workdir.ReadRecord(r.o.Workspace.files(), r.o.Target)
	if err != nil {
		return nil, err
	}
	published := map[imageset.Ref]workdir.Published{}
	for _, c := range rec.Catalogs {
		published[c.Destination] = c
	}
	for _, i := range list {
		c, ok := published[i.destination]
		if !ok || i.account.Status == Blocked {
			continue
		}
		to, err := r.places.to.repository(i.destination)
		if err != nil {
			return errs, err
		}
		if there, err := to.Head(ctx, i.destination.Tag); err == nil && there.Digest == c.Digest &&
			contentOf(ctx, r.places.from, i) != c.Digest {
			errs = append(errs, fmt.Errorf("%w: %s would replace the catalog %s, which was mirrored from %s: give it another "+
				"name with targetRepo or targetTag", fault.ErrInvalid, i.name(), i.destination.Name(), c.Source))
		}
	}
	return errs, nil
}

// replacedSourceError is the error of an image whose destination is the name of a source with other content.
type replacedSourceError struct{ Image, Source, Destination imageset.Ref }

func (e *replacedSourceError) Error() string {
	what := e.Image.Name() + " would replace " + e.Source.Name()
	if e.Image == e.Source {
		what = "the mirrored " + e.Image.Name() + " would replace its own source"
	}
	return fmt.Sprintf("%s, since its destination is %s: name a path below the registry as the destination, or another "+
		"name with targetRepo, targetCatalog or targetTag", what, e.Destination.Name())
}

// Unwrap returns [fault.ErrInvalid].
func (e *replacedSourceError) Unwrap() error { return fault.ErrInvalid }

// replaces tells whether an image would be written over a source with other content. If images come from an archive,
// this holds only if the registry has the source: it may be another registry of the same name.
func (r *run) replaces(ctx context.Context, p, s collisions.Pair) bool {
	if *p.Source == *s.Source && !p.Made {
		return false // the image is copied onto itself
	}
	content := func(of collisions.Pair) digest.Digest {
		if of.Content != "" {
			return of.Content
		}
		return contentOf(ctx, r.places.from, &item{source: *of.Source, destination: *p.Destination})
	}
	is, was := content(p), content(s)
	if is == was && is != "" {
		return false
	}
	if r.o.Mode != FromDisk {
		return true
	}
	to, err := r.places.to.repository(*p.Destination)
	if err != nil {
		return false
	}
	text, kind, err := to.Manifest(ctx, p.Destination.Tag)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return digest.FromBytes(text) == was || p.Made && !isMirrored(ctx, to, text, kind)
}

// isMirrored tells whether a manifest is that of a catalog which this program has rebuilt.
func isMirrored(ctx context.Context, at store.Reader, text []byte, kind string) bool {
	notes, err := notesOf(ctx, at, text, kind)
	return err == nil && notes[filterAnnotation] != ""
}

// errNoImages is the error about an image set without images.
var errNoImages = fault.New(fault.Input, "no images to copy: the image set names no releases, no operators and no additional images")
