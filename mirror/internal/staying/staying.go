// Package staying finds out which manifests at a registry must stay while others are deleted. It decides by digest,
// since that is what registries delete by.
//
// What stays has a root: a tag that is not to be deleted, or a tag or digest that is named by a bundle which stays in a
// published catalog, by a release which stays, or by a record of what was mirrored. With a root stay the entries of its indexes, and with each of
// those what is attached to it.
package staying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/keyed"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/atmirror"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
	"github.com/operator-bindery/bindery/render"
)

// Item is an image that is to be deleted.
type Item struct {
	// Source is the name of the image that was mirrored, Reference that at the target.
	Source, Reference string
	// Digest is that of the image when it was listed; empty if it is not known.
	Digest digest.Digest
	// Bundle tells that it is the image of a bundle, Additional that it is one of additionalImages of the image set.
	Bundle, Additional bool
}

// Means is the digest that an item is about; empty if it is about what its tag stands for. A list has it, or the name
// of the source does: an image that is named by its digest is mirrored with it.
func (i Item) Means(at imageset.Ref) digest.Digest {
	if i.Digest != "" {
		return i.Digest
	}
	if from, err := imageset.ParseRef(i.Source); err == nil && from.InRegistry() && from.Digest != "" {
		return from.Digest
	}
	if d := digest.Digest(atmirror.PullName(at)); d.Validate() == nil {
		return d
	}
	return ""
}

// Needs is what is known of a target: what its catalogs name, and what was recorded.
type Needs struct {
	o     Options
	items []Item

	catalogs []*published
	names    map[string][]naming // by the flattened path of the source
	// exact are references that stay, with the reason.
	exact map[string]map[string]string // by path at the registry, by tag or digest
	// listed are the tags of items, by path, with the digests that the items give for a tag. An empty digest means the
	// manifest that the tag names at the registry.
	listed map[string]listedTags

	repositories keyed.Memo[string, *Repository]
}

type listedTags map[string][]digest.Digest

// Catalog is a catalog of which bundles are to be deleted.
type Catalog struct {
	Reference string
	// Digest is that of the catalog when the items were listed. A catalog that was published since keeps all images
	// that it names.
	Digest digest.Digest
	// Bundles are PACKAGE/NAME, sorted.
	Bundles []string
}

// Kept is an image that something needs.
type Kept struct{ Source, Reference, Reason string }

// Options say what is compared.
type Options struct {
	Remote *registries.Client
	Target imageset.Target
	// Workspace has the records of what was mirrored.
	Workspace workdir.Dir
	// Render reads catalogs.
	Render render.Options
	// WithoutRecord goes on where the workspace has no record of the target; otherwise that is [workdir.ErrNoRecord].
	WithoutRecord bool
	// Shared deletes what other catalogs, records and Kept need, too: only the tags of the listed images are looked at.
	Shared bool
	// Gone are the bundles that are to be deleted; nil if they are not known.
	Gone []Catalog
	// GoneCharts are the charts of which images are to be deleted.
	GoneCharts []workdir.RecordedChart
	// Kept are references that stay, too.
	Kept []Kept
	// Warn receives what cannot be compared.
	Warn func(text string)
}

// requestsAtOnce is how many requests are sent at once: an answer has little in it, and costs less than its way.
const requestsAtOnce = 16

// Read reads what has to be known of the target before the first decision.
func Read(ctx context.Context, o Options, items []Item) (*Needs, error) {
	n := &Needs{o: o, items: items, names: map[string][]naming{}, exact: map[string]map[string]string{},
		listed: map[string]listedTags{}, repositories: keyed.Memo[string, *Repository]{KeepErrors: true}}
	for _, i := range items {
		ref, err := imageset.ParseRef(i.Reference)
		if err != nil {
			return nil, err
		}
		if n.listed[ref.Path] == nil {
			n.listed[ref.Path] = listedTags{}
		}
		n.listed[ref.Path][ref.Tag] = append(n.listed[ref.Path][ref.Tag], i.Means(ref))
		// If another image has got its tag, it is under the tag that is made of its digest.
		if tag := atmirror.DigestTag(i.Source); tag != "" && tag != ref.Tag {
			n.listed[ref.Path][tag] = append(n.listed[ref.Path][tag], i.Means(ref))
		}
	}
	if o.Shared {
		return n, nil
	}
	for _, k := range o.Kept {
		at, ok := atmirror.WithHost(k.Reference, o.Target.Host)
		if ref, err := imageset.ParseRef(at); ok && err == nil {
			ref.Tag = cmp.Or(atmirror.DigestTag(k.Source), ref.Tag)
			n.keep(ref, k.Reason)
		}
	}
	records, err := workdir.ReadRecords(o.Workspace, o.Target.Host)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(records, func(r *workdir.Record) bool { return r.Target == o.Target.String() }) {
		if !o.WithoutRecord {
			return nil, n.noRecord()
		}
		n.o.Warn(fmt.Sprintf("there is no record of what was mirrored to %s: additional images that others mirrored "+
			"there are not known", o.Target))
	}
	for _, rec := range records {
		for _, i := range rec.Images {
			if slices.ContainsFunc(items, func(of Item) bool {
				return of.Additional && of.Reference == i.Destination.String()
			}) {
				continue // the list has it as an additional image, to be deleted
			}
			n.keep(i.Destination, "it was mirrored as an additional image")
		}
	}
	for _, rec := range records {
		for _, c := range rec.Charts {
			if slices.ContainsFunc(o.GoneCharts, c.Is) {
				continue
			}
			for _, i := range c.Images {
				n.keep(i.Destination, "the "+c.Title()+" names it")
			}
		}
	}
	if n.catalogs, err = n.publishedBy(ctx, records); err != nil {
		return nil, err
	}
	if err := n.readAll(ctx, n.catalogs); err != nil {
		return nil, err
	}
	if err := n.keepReleases(ctx); err != nil {
		return nil, err
	}
	found, err := n.findPublished(ctx)
	if err != nil {
		return nil, err
	}
	n.catalogs = append(n.catalogs, found...)
	if err := n.readAll(ctx, found); err != nil {
		return nil, err
	}
	for _, c := range n.catalogs {
		n.keep(c.at, "it is a catalog")
	}
	return n, nil
}

func (n *Needs) noRecord() error {
	where := "no workspace is given"
	if n.o.Workspace != "" {
		where = string(n.o.Workspace) + " has none"
	}
	return fmt.Errorf("%w of what was mirrored to %s, with which to compare: %s", workdir.ErrNoRecord, n.o.Target, where)
}

// readAll reads catalogs. If one cannot be read, the images that it needs are not known, and the error keeps anything
// from being deleted. A catalog outside of the target's path that refuses access is a warning instead.
func (n *Needs) readAll(ctx context.Context, all []*published) error {
	for _, c := range all {
		if err := n.readPublished(ctx, c); err != nil {
			err = fmt.Errorf("catalog %s cannot be read, and may need the images: nothing is deleted: %w", c.at.Name(), err)
			if !atmirror.IsRefused(err) || n.isBelow(c.at.Path) {
				return err
			}
			n.o.Warn(fmt.Sprintf("catalog %s cannot be read, and what it needs is not known: %v", c.at.Name(), err))
		}
	}
	return nil
}

// keep adds a reference at the target that must stay.
func (n *Needs) keep(ref imageset.Ref, why string) {
	at := n.exact[ref.Path]
	if at == nil {
		at = map[string]string{}
		n.exact[ref.Path] = at
	}
	for _, name := range []string{ref.Tag, atmirror.PullName(ref)} {
		if name != "" && at[name] == "" {
			at[name] = why
		}
	}
}

// isRecorded tells whether a catalog is among those of the records.
func (n *Needs) isRecorded(ref imageset.Ref) bool {
	return slices.ContainsFunc(n.catalogs, func(c *published) bool { return c.at.String() == ref.String() })
}

// isDeleted tells whether a bundle is to be deleted from a catalog: only from what the catalog was when the list was
// made. A list without bundles, as oc-mirror writes it, has the images of those that are to be deleted.
func (n *Needs) isDeleted(c *published, b *declcfg.Bundle) bool {
	if n.o.Gone == nil {
		ref, err := imageset.ParseRef(b.Image)
		if err != nil {
			return false
		}
		to := n.o.Target.Image(ref).String()
		return slices.ContainsFunc(n.items, func(i Item) bool { return i.Bundle && i.Reference == to })
	}
	for _, g := range n.o.Gone {
		at, _ := atmirror.WithHost(g.Reference, n.o.Target.Host)
		if at == c.at.String() && g.Digest == c.digest {
			_, found := slices.BinarySearch(g.Bundles, b.Package+"/"+b.Name)
			return found
		}
	}
	return false
}

// namesIn returns the tags and digests that must stay in a repository, as they are named.
func (n *Needs) namesIn(path string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, n.exact[path])
	add := func(below, rest string) {
		for _, x := range n.names[rest] {
			if !x.isAt(below) {
				continue
			}
			for _, name := range []string{x.tag, x.digest.String()} {
				if name != "" && out[name] == "" {
					out[name] = fmt.Sprintf("bundle %s in %s names it", x.bundle, strings.TrimPrefix(x.by.at.String(),
						"docker://"))
				}
			}
		}
	}
	whole := flatten(path)
	add("", whole)
	for i := range len(whole) {
		if whole[i] == '-' {
			add(whole[:i], whole[i+1:])
		}
	}
	return out
}

// Repository is what must stay in one repository.
type Repository struct {
	*registries.Repository
	names map[string]string        // the result of namesIn
	why   map[digest.Digest]string // why manifests stay
	read  map[digest.Digest]bool   // indexes whose entries are in why
}

// readRepository returns what must stay in a repository. It is safe for concurrent use.
func (n *Needs) readRepository(ctx context.Context, path string) (*Repository, error) {
	return n.repositories.Get(ctx, path, func(ctx context.Context) (*Repository, error) {
		at, err := n.o.Remote.Repository(n.o.Target.Host + "/" + path)
		if err != nil {
			return nil, err
		}
		r := &Repository{Repository: at, names: n.namesIn(path), why: map[digest.Digest]string{},
			read: map[digest.Digest]bool{}}
		if err := r.findRoots(ctx, n.listed[path]); err != nil {
			return r, fmt.Errorf("what must stay cannot be found out: %w", err)
		}
		return r, nil
	})
}

const (
	// maxTagsRead is how many tags of a repository are read to find out what they stand for.
	maxTagsRead = 20_000
	// maxStaying is how many manifests of a repository stay.
	maxStaying = 200_000
)

// root is a manifest that stays, with what is in it.
type root struct {
	name, why string
	digest    digest.Digest // empty if it is not there
	entries   []v1.Descriptor
}

// findRoots finds the tags and digests that stay, and marks their manifests, entries and attachments.
func (s *Repository) findRoots(ctx context.Context, listed listedTags) error {
	tags, _, err := s.Tags(ctx, 0)
	if atmirror.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(tags) > maxTagsRead {
		return fmt.Errorf("%w: %d tags, more than %d", fault.ErrLimit, len(tags), maxTagsRead)
	}
	var roots []*root
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		roots = append(roots, &root{name: name, why: s.names[name]})
	}
	waiting := map[string]bool{} // tags that are listed, and belong to an image perhaps
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		switch means, ok := listed[tag]; {
		case s.names[tag] != "":
		case !ok:
			roots = append(roots, &root{name: tag, why: fmt.Sprintf("the tag %s, which is not to be deleted, has it", tag)})
		case slices.Contains(means, "") || slices.ContainsFunc(means, func(d digest.Digest) bool {
			return tag == reflist.Tag(d)
		}):
			waiting[tag] = true
		default:
			roots = append(roots, &root{name: tag, why: fmt.Sprintf("the tag %s stands for it and not for %s, which is to "+
				"be deleted", tag, means[0])})
			waiting[tag] = true
		}
	}
	if err := s.add(ctx, roots, listed); err != nil {
		return err
	}
	return s.addAttached(ctx, waiting)
}

// add reads manifests and marks them with their entries. What a listed tag stands for stays only if the list does not
// mean it.
func (s *Repository) add(ctx context.Context, roots []*root, listed listedTags) error {
	err := guard.Each(ctx, requestsAtOnce, roots, func(ctx context.Context, _ int, r *root) (err error) {
		r.digest, r.entries, err = s.readManifest(ctx, r.name)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range roots {
		if r.digest == "" || s.names[r.name] == "" && slices.Contains(listed[r.name], r.digest) {
			continue
		}
		if err := s.mark(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// readManifest returns the digest of a manifest and the entries of an index; an empty digest if it is not there. What
// is no manifest has no entries.
func (s *Repository) readManifest(ctx context.Context, name string) (digest.Digest, []v1.Descriptor, error) {
	text, _, err := s.Manifest(ctx, name)
	if atmirror.IsAbsent(err) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	entries, err := Entries(text)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return digest.FromBytes(text), entries, nil
}

// Entries returns the entries of an index; none of what is no manifest.
func Entries(text []byte) ([]v1.Descriptor, error) {
	parts, err := store.PartsOf(text)
	if errors.Is(err, fault.ErrInvalid) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parts.Manifests, nil
}

// mark adds a root with the entries of its index, at all levels.
func (s *Repository) mark(ctx context.Context, r *root) error {
	read := func(ctx context.Context, n *store.Node) error {
		if s.read[n.Digest] || n.MediaType != "" && !manifest.MIMETypeIsMultiImage(n.MediaType) {
			return nil
		}
		_, entries, err := s.readManifest(ctx, n.Digest.String())
		n.Parts = &store.Parts{Manifests: entries}
		return err
	}
	visit := func(_ context.Context, n *store.Node) error {
		if len(s.why) >= maxStaying {
			return fmt.Errorf("%w: more than %d manifests", fault.ErrLimit, maxStaying)
		}
		if s.why[n.Digest] == "" {
			s.why[n.Digest] = r.why
			if n.Above != nil {
				s.why[n.Digest] = fmt.Sprintf("it is in the index %s, which stays: %s", r.digest, r.why)
			}
		}
		if s.read[n.Digest] {
			n.Entries = nil
		}
		s.read[n.Digest] = s.read[n.Digest] || len(n.Entries) > 0
		return nil
	}
	return store.Walk(ctx, store.Node{Descriptor: v1.Descriptor{Digest: r.digest},
		Parts: &store.Parts{Manifests: r.entries}}, store.WalkOptions{Read: read, Visit: visit})
}

// addAttached adds what the listed tags stand for that belong to manifests which stay. Their attachments may have some,
// too.
func (s *Repository) addAttached(ctx context.Context, waiting map[string]bool) error {
	for more := true; more && len(waiting) > 0; {
		var roots []*root
		for _, d := range slices.Sorted(maps.Keys(s.why)) {
			for _, tag := range tagsOfAttached(d) {
				if waiting[tag] {
					delete(waiting, tag)
					roots = append(roots, &root{name: tag, why: attachedTo(d, s.why[d])})
				}
			}
		}
		if err := s.add(ctx, roots, nil); err != nil {
			return err
		}
		more = len(roots) > 0
	}
	return nil
}

// tagsOfAttached are the tags of what may belong to a manifest.
func tagsOfAttached(d digest.Digest) []string {
	out := []string{reflist.Tag(d)}
	for _, end := range referrers.TagEnds() {
		out = append(out, referrers.TagOf(d, end))
	}
	return out
}

func attachedTo(d digest.Digest, why string) string {
	return fmt.Sprintf("it belongs to %s, which stays: %s", d, why)
}

// Decision is what is known about an item.
type Decision struct {
	Item Item
	Ref  imageset.Ref
	// In is its repository.
	In *Repository
	// Top is what the item is at the target; without a digest it is not there.
	Top v1.Descriptor
	// Entries are those of an index.
	Entries []v1.Descriptor
	// Why it must stay; empty if it need not. TagAlone tells that nothing names it by its tag, so that the tag need not
	// stay.
	Why      string
	TagAlone bool
	// Err is why nothing can be decided.
	Err error
}

// decideAtOnce is how many items are decided on at once. What stays in their repositories is found out with more
// requests.
const decideAtOnce = 4

// Decide decides on all items, in their order.
func (n *Needs) Decide(ctx context.Context) ([]Decision, error) {
	out := make([]Decision, len(n.items))
	err := guard.Each(ctx, decideAtOnce, n.items, func(ctx context.Context, at int, i Item) error {
		d := &out[at]
		d.Item = i
		d.Err = d.decide(ctx, n)
		return context.Cause(ctx)
	})
	return out, err
}

// decide finds out what an item is, and whether it must stay.
func (d *Decision) decide(ctx context.Context, n *Needs) (err error) {
	if d.Ref, err = imageset.ParseRef(d.Item.Reference); err != nil {
		return err
	}
	if d.In, err = n.readRepository(ctx, d.Ref.Path); err != nil {
		return err
	}
	name := d.Ref.Tag
	if means := d.Item.Means(d.Ref); means != "" {
		name = means.String()
	}
	text, kind, err := d.In.Manifest(ctx, name)
	if atmirror.IsAbsent(err) {
		d.Why = n.namedAs(d.In, d.Ref, name)
		return nil
	}
	if err != nil {
		return err
	}
	d.Top = v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if d.Entries, err = Entries(text); err != nil {
		return err
	}
	if !n.o.Shared {
		d.Why, err = d.In.Stays(ctx, d.Top.Digest, text)
		d.TagAlone = d.Ref.Tag != "" && d.In.names[d.Ref.Tag] == ""
	}
	return err
}

// namedAs tells why an item that is not there would stay.
func (n *Needs) namedAs(s *Repository, ref imageset.Ref, name string) string {
	if n.o.Shared {
		return ""
	}
	if why := s.names[name]; why != "" {
		return why
	}
	return s.names[ref.Tag]
}

// maxSubjects is how many subjects of subjects are followed.
const maxSubjects = 4

// Stays tells why a manifest stays: on its own account, or as it is attached to one that does, or to what is attached
// to that.
func (s *Repository) Stays(ctx context.Context, d digest.Digest, text []byte) (string, error) {
	if why := s.why[d]; why != "" {
		return why, nil
	}
	for range maxSubjects {
		_, subject, err := reflist.Describe(text, "")
		if err != nil || subject == nil {
			return "", nil
		}
		if why := s.why[subject.Digest]; why != "" {
			return attachedTo(subject.Digest, why), nil
		}
		if text, _, err = s.Manifest(ctx, subject.Digest.String()); atmirror.IsAbsent(err) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	return "", nil
}

// Below returns the manifests below an index that exist and need not stay, at all levels.
func (s *Repository) Below(ctx context.Context, top digest.Digest, entries []v1.Descriptor) ([]digest.Digest, error) {
	var out []digest.Digest
	read := func(ctx context.Context, n *store.Node) error {
		text, _, err := s.Manifest(ctx, n.Digest.String())
		if atmirror.IsAbsent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if why, err := s.Stays(ctx, n.Digest, text); why != "" || err != nil {
			return err
		}
		entries, err := Entries(text)
		n.Parts = &store.Parts{Manifests: entries}
		return err
	}
	visit := func(_ context.Context, n *store.Node) error {
		if n.Above != nil && n.Parts != nil {
			out = append(out, n.Digest)
		}
		return nil
	}
	err := store.Walk(ctx, store.Node{Descriptor: v1.Descriptor{Digest: top}, Parts: &store.Parts{Manifests: entries}},
		store.WalkOptions{Read: read, Visit: visit})
	return out, err
}
