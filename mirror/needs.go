package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/render"
)

// needs finds out which manifests at a target must stay while others are deleted: it decides by digest, since that is
// what registries delete by. What stays has a root: a tag that is not to be deleted, or a tag or digest that is named by
// a bundle which stays in a published catalog, or by a record of what was mirrored. With a root stay the entries of its
// indexes, and with each of those what is attached to it.
type needs struct {
	o     needsOptions
	log   logger
	items []DeleteItem

	catalogs []*published
	names    map[string][]naming // by the flattened path of the source
	// exact are references that stay, with the reason.
	exact map[string]map[string]string // by path at the registry, by tag or digest
	// listed are the tags of items, by path, with the digests that the list means; an empty one is whatever the tag stands
	// for.
	listed map[string]listedTags

	mu           sync.Mutex
	repositories map[string]*surveyed
}

// surveyed is what is found out about a repository once.
type surveyed struct {
	once sync.Once
	at   *staying
	err  error
}

type listedTags map[string][]digest.Digest

// needsOptions say what is compared.
type needsOptions struct {
	Remote    *registries.Client
	Target    imageset.Target
	Workspace *Workspace
	Render    render.Options
	// WithoutRecord goes on where the workspace has no record of the target.
	WithoutRecord bool
	// Shared compares with tags alone: what catalogs and records name is deleted all the same.
	Shared bool
	// Gone are the bundles that are to be deleted; nil if the list does not have them.
	Gone []DeleteCatalog
	// Kept are references that stay, too.
	Kept []KeptItem
}

// newNeeds reads what has to be known of the target before the first decision.
func newNeeds(ctx context.Context, o needsOptions, log logger, items []DeleteItem) (*needs, error) {
	n := &needs{o: o, log: log, items: items, names: map[string][]naming{}, exact: map[string]map[string]string{},
		listed: map[string]listedTags{}, repositories: map[string]*surveyed{}}
	for _, i := range items {
		ref, err := imageset.ParseRef(i.Reference)
		if err != nil {
			return nil, err
		}
		if n.listed[ref.Path] == nil {
			n.listed[ref.Path] = listedTags{}
		}
		n.listed[ref.Path][ref.Tag] = append(n.listed[ref.Path][ref.Tag], i.means(ref))
		// Where another image has its tag, it has that of its digest.
		if tag := digestTagOf(i.Name); tag != "" && tag != ref.Tag {
			n.listed[ref.Path][tag] = append(n.listed[ref.Path][tag], i.means(ref))
		}
	}
	if o.Shared {
		return n, nil
	}
	for _, k := range o.Kept {
		at, ok := atHost(k.Reference, o.Target.Host)
		if ref, err := imageset.ParseRef(at); ok && err == nil {
			ref.Tag = cmp.Or(digestTagOf(k.Name), ref.Tag)
			n.stays(ref.String(), k.Reason)
		}
	}
	records, err := readRecords(o.Workspace, o.Target.Host)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(records, func(r *record) bool { return r.Target == o.Target.String() }) {
		if !o.WithoutRecord {
			return nil, n.noRecord()
		}
		n.log.warn(fmt.Sprintf("there is no record of what was mirrored to %s: additional images that others mirrored "+
			"there are not known", o.Target))
	}
	for _, rec := range records {
		for _, i := range rec.Images {
			if slices.ContainsFunc(items, func(of DeleteItem) bool {
				return of.Type == Additional && of.Reference == i.Destination
			}) {
				continue // it is to be deleted as what it is
			}
			n.stays(i.Destination, "it was mirrored as an additional image")
		}
	}
	if n.catalogs, err = n.publishedBy(ctx, records); err != nil {
		return nil, err
	}
	if err := n.readAll(ctx, n.catalogs); err != nil {
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
		n.stays(c.at.String(), "it is a catalog")
	}
	return n, nil
}

func (n *needs) noRecord() error {
	where := "no workspace is given"
	if n.o.Workspace != nil {
		where = n.o.Workspace.Dir() + " has none"
	}
	return fmt.Errorf("%w of what was mirrored to %s, with which to compare: %s", ErrNoRecord, n.o.Target, where)
}

// readAll reads catalogs. What one needs that cannot be read is not known, so that nothing is deleted.
func (n *needs) readAll(ctx context.Context, all []*published) error {
	for _, c := range all {
		if err := n.readPublished(ctx, c); err != nil {
			err = fmt.Errorf("catalog %s cannot be read, and may need the images: nothing is deleted: %w", c.at.Name(), err)
			if !unauthorized(err) || n.isBelow(c.at.Path) {
				return err
			}
			n.log.warn(fmt.Sprintf("catalog %s cannot be read, and what it needs is not known: %v", c.at.Name(), err))
		}
	}
	return nil
}

// stays adds a reference at the target that must stay.
func (n *needs) stays(reference, why string) {
	ref, err := imageset.ParseRef(reference)
	if err != nil {
		return
	}
	at := n.exact[ref.Path]
	if at == nil {
		at = map[string]string{}
		n.exact[ref.Path] = at
	}
	for _, name := range []string{ref.Tag, pulledBy(ref)} {
		if name != "" && at[name] == "" {
			at[name] = why
		}
	}
}

// known tells whether a catalog is among those of the records.
func (n *needs) known(ref imageset.Ref) bool {
	return slices.ContainsFunc(n.catalogs, func(c *published) bool { return c.at.String() == ref.String() })
}

// goes tells whether a bundle is to be deleted from a catalog: only from what the catalog was when the list was made. A
// list without bundles, as oc-mirror writes it, has the images of those that are to be deleted.
func (n *needs) goes(c *published, b *declcfg.Bundle) bool {
	if n.o.Gone == nil {
		ref, err := imageset.ParseRef(b.Image)
		if err != nil {
			return false
		}
		to := n.o.Target.Image(ref).String()
		return slices.ContainsFunc(n.items, func(i DeleteItem) bool { return i.Type == Bundle && i.Reference == to })
	}
	for _, g := range n.o.Gone {
		at, _ := atHost(g.Reference, n.o.Target.Host)
		if at == c.at.String() && g.Digest == c.digest {
			_, found := slices.BinarySearch(g.Bundles, b.Package+"/"+b.Name)
			return found
		}
	}
	return false
}

// namesIn returns the tags and digests that must stay in a repository, as they are named.
func (n *needs) namesIn(path string) map[string]string {
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
	whole := flat(path)
	add("", whole)
	for i := range len(whole) {
		if whole[i] == '-' {
			add(whole[:i], whole[i+1:])
		}
	}
	return out
}

// staying is what must stay in one repository.
type staying struct {
	at    *registries.Repository
	names map[string]string        // as namesIn returns it
	why   map[digest.Digest]string // all manifests
	read  map[digest.Digest]bool   // those whose entries are among them
}

// in returns what must stay in a repository. It is safe for concurrent use.
func (n *needs) in(ctx context.Context, path string) (*staying, error) {
	n.mu.Lock()
	of := n.repositories[path]
	if of == nil {
		of = &surveyed{}
		n.repositories[path] = of
	}
	n.mu.Unlock()
	of.once.Do(func() {
		at, err := n.o.Remote.Repository(n.o.Target.Host + "/" + path)
		if err != nil {
			of.err = err
			return
		}
		of.at = &staying{at: at, names: n.namesIn(path), why: map[digest.Digest]string{}, read: map[digest.Digest]bool{}}
		if err := of.at.find(ctx, n.listed[path]); err != nil {
			of.err = fmt.Errorf("what must stay cannot be found out: %w", err)
		}
	})
	return of.at, of.err
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

// find finds what stays, with what belongs to it.
func (s *staying) find(ctx context.Context, listed listedTags) error {
	tags, _, err := s.at.Tags(ctx, 0)
	if absent(err) {
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
func (s *staying) add(ctx context.Context, roots []*root, listed listedTags) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(asksAtOnce)
	for _, r := range roots {
		g.Go(func() (err error) {
			r.digest, r.entries, err = s.manifest(gctx, r.name)
			return err
		})
	}
	if err := g.Wait(); err != nil {
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

// manifest returns the digest of a manifest and the entries of an index; an empty digest if it is not there. What is no
// manifest has no entries.
func (s *staying) manifest(ctx context.Context, name string) (digest.Digest, []v1.Descriptor, error) {
	text, _, err := s.at.Manifest(ctx, name)
	if absent(err) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	entries, err := entriesIn(text)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return digest.FromBytes(text), entries, nil
}

// entriesIn returns the entries of an index; none of what is no manifest.
func entriesIn(text []byte) ([]v1.Descriptor, error) {
	parts, err := store.PartsOf(text)
	if errors.Is(err, fault.ErrInvalid) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parts.Manifests, nil
}

// mark adds a root with its entries, and theirs.
func (s *staying) mark(ctx context.Context, r *root) error {
	read := func(ctx context.Context, n *store.Node) error {
		if s.read[n.Digest] || n.MediaType != "" && !manifest.MIMETypeIsMultiImage(n.MediaType) {
			return nil
		}
		_, entries, err := s.manifest(ctx, n.Digest.String())
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
func (s *staying) addAttached(ctx context.Context, waiting map[string]bool) error {
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
	for _, end := range attachmentEnds {
		out = append(out, referrers.TagOf(d, end))
	}
	return out
}

func attachedTo(d digest.Digest, why string) string {
	return fmt.Sprintf("it belongs to %s, which stays: %s", d, why)
}

// decision is what is known about an item.
type decision struct {
	DeleteItem
	ref imageset.Ref
	in  *staying
	// top is what the item is at the target; without a digest it is not there.
	top v1.Descriptor
	// entries are those of an index.
	entries []v1.Descriptor
	// why it must stay; empty if it need not.
	why string
	err error
}

// decideAtOnce is how many items are decided on at once. What stays in their repositories is found out with more
// requests.
const decideAtOnce = 4

// decide decides on all items, in their order.
func (n *needs) decide(ctx context.Context) ([]decision, error) {
	out := make([]decision, len(n.items))
	var g errgroup.Group
	g.SetLimit(decideAtOnce)
	for at, i := range n.items {
		g.Go(func() error {
			d := &out[at]
			d.DeleteItem = i
			d.err = d.find(ctx, n)
			return context.Cause(ctx)
		})
	}
	return out, g.Wait()
}

func (d *decision) find(ctx context.Context, n *needs) (err error) {
	if d.ref, err = imageset.ParseRef(d.Reference); err != nil {
		return err
	}
	if d.in, err = n.in(ctx, d.ref.Path); err != nil {
		return err
	}
	name := d.ref.Tag
	if means := d.means(d.ref); means != "" {
		name = means.String()
	}
	text, kind, err := d.in.at.Manifest(ctx, name)
	if absent(err) {
		d.why = n.namedAs(d.in, d.ref, name)
		return nil
	}
	if err != nil {
		return err
	}
	d.top = v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if d.entries, err = entriesIn(text); err != nil {
		return err
	}
	if !n.o.Shared {
		d.why, err = d.in.stays(ctx, d.top.Digest, text)
	}
	return err
}

// namedAs tells why an item that is not there would stay.
func (n *needs) namedAs(s *staying, ref imageset.Ref, name string) string {
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

// stays tells why a manifest stays: on its own account, or as it is attached to one that does, or to what is attached to
// that.
func (s *staying) stays(ctx context.Context, d digest.Digest, text []byte) (string, error) {
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
		if text, _, err = s.at.Manifest(ctx, subject.Digest.String()); absent(err) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	return "", nil
}

// digestTagOf returns the tag that an image at a mirror has by its digest; empty if its source is not named by one.
func digestTagOf(source string) string {
	if from, err := imageset.ParseRef(source); err == nil && from.InRegistry() && from.Digest != "" {
		return imageset.DigestTag(from.Digest)
	}
	return ""
}

// means is the digest that an item is about; empty if it is about what its tag stands for. A list has it, or the name
// of the source does: an image that is named by its digest is mirrored with it.
func (i DeleteItem) means(at imageset.Ref) digest.Digest {
	if i.Digest != "" {
		return i.Digest
	}
	if from, err := imageset.ParseRef(i.Name); err == nil && from.InRegistry() && from.Digest != "" {
		return from.Digest
	}
	if d := digest.Digest(pulledBy(at)); d.Validate() == nil {
		return d
	}
	return ""
}

// below returns what is in an index and need not stay: entries that are there, and theirs.
func (s *staying) below(ctx context.Context, top digest.Digest, entries []v1.Descriptor) ([]digest.Digest, error) {
	var out []digest.Digest
	read := func(ctx context.Context, n *store.Node) error {
		text, _, err := s.at.Manifest(ctx, n.Digest.String())
		if absent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if why, err := s.stays(ctx, n.Digest, text); why != "" || err != nil {
			return err
		}
		entries, err := entriesIn(text)
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
