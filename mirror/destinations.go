package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// checkItems looks for what would go wrong later, before anything is written: images that fall together at the
// destination, images that would replace a source, blocked images.
func (r *run) checkItems(ctx context.Context, list []*item) error {
	byPlace := map[string][]*item{}
	for _, i := range list {
		i.begin(&r.tally)
		r.block(i)
		if i.account.Status != Blocked {
			at := i.destination.String()
			byPlace[at] = append(byPlace[at], i)
		}
	}
	contents, err := r.resolveShared(ctx, byPlace)
	if err != nil {
		return err
	}
	for _, i := range list {
		if together := byPlace[i.destination.String()]; len(together) > 1 && together[0] == i {
			r.shareTag(ctx, together, contents)
		}
	}
	var pairs, sources []imageset.Pair
	for _, i := range list {
		if i.account.Status != Blocked {
			pairs = append(pairs, imageset.Pair{Source: i.source, Destination: i.destination, Content: contents[i]})
		}
	}
	sources = append(sources, pairs...)
	for _, c := range r.catalogs {
		if c.index == nil {
			continue
		}
		sources = append(sources, imageset.Pair{Source: c.op.Catalog, Content: c.digest})
		if c.readFrom != (imageset.Ref{}) {
			sources = append(sources, imageset.Pair{Source: c.readFrom, Content: c.digest})
		}
		as := imageset.Pair{Source: c.op.Catalog, Content: c.digest, Destination: r.place().Catalog(c.op, !c.asIs, "",
			c.account.FilterHash)}
		rebuilt := imageset.Pair{Source: c.op.Catalog, Content: c.rebuiltContent(), Made: true, Destination: r.place().Catalog(c.op,
			true, "", c.account.FilterHash)}
		if !c.asIs {
			as = rebuilt
		}
		pairs = append(pairs, as)
		if c.asIs {
			// It may be rebuilt after all, without bundles that lack images.
			c.onlyAsIs = errors.Join(r.conflicts(ctx, append([]imageset.Pair{rebuilt}, sources...), sources)...)
		}
	}
	errs := r.conflicts(ctx, pairs, sources)
	replaced, err := r.replacedCatalogs(ctx, list)
	if err != nil {
		return err
	}
	if errs = append(errs, replaced...); len(errs) > 0 {
		return errors.Join(errs...)
	}
	if len(list) == 0 {
		return errNoImages
	}
	return nil
}

// conflicts returns an error for each image that would be written over another one, or over a source.
func (r *run) conflicts(ctx context.Context, pairs, sources []imageset.Pair) (errs []error) {
	for _, c := range imageset.Collisions(pairs) {
		errs = append(errs, &c)
	}
	return append(errs, r.replacedSources(ctx, pairs, sources)...)
}

// rebuiltContent stands for the digest of a rebuilt catalog, which is not known yet: it is that of no image.
func (c *catalog) rebuiltContent() digest.Digest {
	return digest.FromString("rebuilt " + c.digest.String() + " " + c.op.Catalog.String() + " " + c.account.FilterHash)
}

// resolveShared finds out the digests of images that share a destination with others. What cannot be found out is
// empty.
func (r *run) resolveShared(ctx context.Context, byPlace map[string][]*item) (map[*item]digest.Digest, error) {
	var mu sync.Mutex
	contents := map[*item]digest.Digest{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(r.o.Jobs, 1))
	for _, together := range byPlace {
		if len(together) == 1 {
			continue
		}
		for _, i := range together {
			g.Go(func() error {
				d := r.contentOf(gctx, i)
				mu.Lock()
				defer mu.Unlock()
				contents[i] = d
				return context.Cause(gctx)
			})
		}
	}
	return contents, g.Wait()
}

// contentOf returns the digest that the source of an image has; empty if that cannot be found out.
func (r *run) contentOf(ctx context.Context, i *item) digest.Digest {
	if i.source.Digest != "" {
		return i.source.Digest
	}
	if top, err := r.from.head(ctx, i); err == nil {
		return top.Digest
	}
	from, err := r.from.open(ctx, i) // a layout
	if err != nil {
		return ""
	}
	if err := from.close(); err != nil {
		return ""
	}
	return from.top.Digest
}

// shareTag decides which of several images gets a tag that they have in one source repository: that which the tag stands
// for there. The others, which are named by digests too, get the tags of their digests.
func (r *run) shareTag(ctx context.Context, together []*item, contents map[*item]digest.Digest) {
	first := together[0]
	var tagged *item
	same := true
	for _, i := range together {
		if i.source.Repository() != first.source.Repository() || i.source.Tag != first.source.Tag ||
			i.source.Transport != first.source.Transport {
			return // names of different sources are not mended here
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
		at := &item{source: first.source, onMedium: first.onMedium, destination: first.destination}
		at.source.Digest = ""
		has = r.contentOf(ctx, at)
	}
	for _, i := range together {
		if i == tagged || contents[i] == has && has != "" {
			continue
		}
		r.toDigestTag(i)
	}
}

// placeTagged looks at the tags of images that are named by a tag and a digest: where one stands for another image, of an
// earlier run, it is moved only if it stands for this one at the source. Else the image gets the tag of its digest.
func (r *run) placeTagged(ctx context.Context, list []*item) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(r.o.Jobs, asksAtOnce))
	for _, i := range list {
		if !i.byDigest() || i.source.Tag == "" || i.destination.Tag == imageset.DigestTag(i.source.Digest) ||
			i.account.Status == Blocked {
			continue
		}
		g.Go(func() error {
			if is := r.tagAt(gctx, i); is == "" || is == i.source.Digest {
				return context.Cause(gctx)
			}
			at := &item{source: i.source, onMedium: i.onMedium, destination: i.destination}
			if at.source.Digest = ""; r.contentOf(gctx, at) != i.source.Digest {
				r.toDigestTag(i)
			}
			return context.Cause(gctx)
		})
	}
	return g.Wait()
}

// tagAt is what the tag of an image stands for at the destination; empty if that is nothing, or cannot be found out.
func (r *run) tagAt(ctx context.Context, i *item) digest.Digest {
	if r.writer != nil {
		return r.writer.KeptTag(i.destination.Path, i.destination.Tag)
	}
	to, err := r.to.repository(i.destination)
	if err != nil {
		return ""
	}
	there, err := r.askFor(ctx, to, i)
	if err != nil {
		return ""
	}
	return there.Digest
}

// toDigestTag gives an image the tag of its digest, as another one has its own.
func (r *run) toDigestTag(i *item) {
	was := i.destination.Name()
	i.destination.Tag = imageset.DigestTag(i.source.Digest)
	i.account.Destination = i.destination.String()
	i.there, i.asked = v1.Descriptor{}, false
	r.problem(Warning, i.name(), "", "at the destination it is %s: the tag of %s is that of another image",
		i.destination.Name(), was)
}

// replacedSources returns an error for each image that would be written to the name of a source which has other content.
func (r *run) replacedSources(ctx context.Context, pairs, sources []imageset.Pair) (errs []error) {
	if r.o.Mode == ToDisk {
		return nil
	}
	byName := map[string][]imageset.Pair{}
	for _, s := range sources {
		if s.Source.InRegistry() && s.Source.Tag != "" {
			name := sameName(s.Source)
			byName[name] = append(byName[name], s)
		}
	}
	told := map[string]bool{}
	for _, p := range pairs {
		for _, s := range byName[sameName(p.Destination)] {
			e := &ReplacedSourceError{Image: p.Source, Source: s.Source, Destination: p.Destination}
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
	rec, err := readRecord(r.o.Workspace, r.o.Target)
	if err != nil {
		return nil, err
	}
	published := map[string]recordCatalog{}
	for _, c := range rec.Catalogs {
		published[c.Destination] = c
	}
	for _, i := range list {
		c, ok := published[i.destination.String()]
		if !ok || i.account.Status == Blocked {
			continue
		}
		to, err := r.to.repository(i.destination)
		if err != nil {
			return errs, err
		}
		if there, err := to.Head(ctx, i.destination.Tag); err == nil && there.Digest == c.Digest &&
			r.contentOf(ctx, i) != c.Digest {
			errs = append(errs, fmt.Errorf("%w: %s would replace the catalog %s, which was mirrored from %s: give it another "+
				"name with targetRepo or targetTag", fault.ErrInvalid, i.name(), i.destination.Name(), c.Source))
		}
	}
	return errs, nil
}

// ReplacedSourceError is the error of an image whose destination is the name of a source with other content.
type ReplacedSourceError struct{ Image, Source, Destination imageset.Ref }

func (e *ReplacedSourceError) Error() string {
	what := e.Image.Name() + " would replace " + e.Source.Name()
	if e.Image == e.Source {
		what = "the mirrored " + e.Image.Name() + " would replace its own source"
	}
	return fmt.Sprintf("%s, since its destination is %s: name a path below the registry as the destination, or another "+
		"name with targetRepo, targetCatalog or targetTag", what, e.Destination.Name())
}

// Unwrap returns [fault.ErrInvalid].
func (e *ReplacedSourceError) Unwrap() error { return fault.ErrInvalid }

// replaces tells whether an image would be written over a source with other content. Out of an archive that is so only
// if the registry has the source: it may be another registry of the same name.
func (r *run) replaces(ctx context.Context, p, s imageset.Pair) bool {
	if p.Source == s.Source && !p.Made {
		return false // it is copied onto itself
	}
	content := func(of imageset.Pair) digest.Digest {
		if of.Content != "" {
			return of.Content
		}
		return r.contentOf(ctx, &item{source: of.Source, destination: p.Destination, onMedium: onMedium.Image(of.Source)})
	}
	is, was := content(p), content(s)
	if is == was && is != "" {
		return false
	}
	if r.o.Mode != FromDisk {
		return true
	}
	to, err := r.to.repository(p.Destination)
	if err != nil {
		return false
	}
	text, _, err := to.Manifest(ctx, p.Destination.Tag)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return digest.FromBytes(text) == was || p.Made && !isMirrored(text)
}

// isMirrored tells whether a manifest is that of a catalog which this program has rebuilt.
func isMirrored(text []byte) bool {
	var m struct {
		Annotations map[string]string `json:"annotations"`
	}
	return json.Unmarshal(text, &m) == nil && m.Annotations[filterAnnotation] != ""
}

// sameName is the name of an image without what may be written in several ways.
func sameName(ref imageset.Ref) string {
	return imageset.PlainHost(ref.Host) + "/" + ref.Path + ":" + ref.Tag
}
