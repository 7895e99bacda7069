package mirror

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/tally"
)

// item is one image to copy, once, however many name it.
type item struct {
	source imageset.Ref
	// destination is the place at the target; on a medium its host is empty.
	destination imageset.Ref
	// named is its place on a medium; nil if that is the one of its source.
	named *imageset.Ref
	kind  Kind
	// platforms are those that are copied of an index; empty for all.
	platforms []v1.Platform
	users     []user
	release   *release // that it is a part of; nil for other kinds
	catalog   *catalog // that it is the image of; nil for other kinds
	// build, unless nil, makes the image, and may name its destination by its digest; of others the source is opened.
	build func(ctx context.Context) (*opened, error)

	damaged bool // its content in an archive does not match its digest
	pending bool // its source has it, and the run of a shard is to copy it; only known when catalogs are published

	account *imageAccount // nil until the destination is checked
	cause   error         // of account.Error
	state   *itemState    // nil until something is found out
	// there is what the destination has under the name of the image, empty if that is nothing; nil until it is asked.
	there    *v1.Descriptor
	resolved atomic.Value // the digest.Digest that the tag of the source stands for, once it was read
	asking   sync.Mutex   // guards there
	moving   *tally.Image // its part in the progress
}

// user is a bundle that names an image.
type user struct {
	catalog     *catalog
	pkg, bundle string
}

// itemState is what is found out while an image is copied.
type itemState struct {
	digest    digest.Digest
	mediaType string          // of what the digest is that of
	kept      []v1.Descriptor // the images of an index that are copied
	// attached is what was copied with it: tags, and digests of what has none.
	attached []string
}

// byDigest tells whether the image is named by its digest: one that is built has that of its source.
func (i *item) byDigest() bool { return i.build == nil && i.source.Digest != "" }

// onMedium is the place of the image on a medium.
func (i *item) onMedium() imageset.Ref {
	if i.named != nil {
		return *i.named
	}
	return onMedium.Image(i.source)
}

// nameOnMedium sets the place of the image on a medium. An item is smaller without one.
func (i *item) nameOnMedium(at imageset.Ref) {
	if i.named = nil; at != i.onMedium() {
		i.named = &at
	}
}

// name is how messages name the image.
func (i *item) name() string { return i.source.Name() }

// ofRelease tells whether an image is a part of a release: its tag at the destination is that of the release.
func (i *item) ofRelease() bool {
	return i.kind == Release || i.kind == ReleaseContent || i.kind == Graph
}

func (i *item) failed() bool { return i.account.Status == Failed || i.account.Status == Skipped }

// isThere tells whether the destination has the image.
func (i *item) isThere() bool { return i.account.Status == Copied || i.account.Status == Present }

// setDestination gives the image another place at the destination, which is asked for there.
func (i *item) setDestination(at imageset.Ref) {
	i.destination, i.there = at, nil
	if i.account != nil {
		i.account.Destination = at.String()
	}
}

// items collects images: each once, by its source as it is written, with the union of what is requested.
type items struct {
	byKey map[string]*item
	list  []*item
}

// add returns the item of an image, a new one if it is not asked for yet.
func (s *items) add(source, destination imageset.Ref, kind Kind, platforms []v1.Platform) *item {
	if s.byKey == nil {
		s.byKey = map[string]*item{}
	}
	key := source.String() + " " + destination.String()
	i := s.byKey[key]
	if i == nil {
		i = &item{source: source, destination: destination, kind: kind, platforms: platform.AppendNew(nil, platforms...)}
		s.byKey[key] = i
		s.list = append(s.list, i)
	}
	// A bundle that another bundle names as a related image stays a bundle: it is copied with the bundles.
	if kind.rank() > i.kind.rank() {
		i.kind = kind
	}
	if len(platforms) == 0 {
		i.platforms = nil
	} else if len(i.platforms) > 0 {
		i.platforms = platform.AppendNew(i.platforms, platforms...)
	}
	return i
}

// sorted returns the items in the order in which they are copied.
func (s *items) sorted() []*item {
	type keyed struct {
		*item
		destination, source string
	}
	all := make([]keyed, 0, len(s.list))
	for _, i := range s.list {
		all = append(all, keyed{i, i.destination.String(), i.source.String()})
	}
	slices.SortFunc(all, func(a, b keyed) int {
		return cmp.Or(a.kind.rank()-b.kind.rank(), cmp.Compare(a.destination, b.destination), cmp.Compare(a.source, b.source))
	})
	for n, i := range all {
		s.list[n] = i.item
	}
	return s.list
}

// startAccount fills in what the account of an image has before it is copied.
func (i *item) startAccount(moved *tally.Tally) {
	i.moving = moved.Image()
	i.account = &imageAccount{Source: i.source.String(), Destination: i.destination.String(), Kind: i.kind,
		Status: Skipped}
	if i.kind != Catalog { // which may be rebuilt
		i.account.Digest = i.source.Digest
	}
	var packages, bundles []string
	for _, u := range i.users {
		packages, bundles = append(packages, u.pkg), append(bundles, u.bundle)
	}
	slices.Sort(packages)
	slices.Sort(bundles)
	i.account.Packages, i.account.Bundles = slices.Compact(packages), slices.Compact(bundles)
}

// note keeps what the source of the image is.
func (i *item) note(top v1.Descriptor) {
	i.result().digest, i.result().mediaType, i.account.Digest = top.Digest, top.MediaType, top.Digest
}

// result is what is found out while the image is copied. Of an image that is absent that is nothing.
func (i *item) result() *itemState {
	if i.state == nil {
		i.state = &itemState{}
	}
	return i.state
}

// fail notes why an image is not there.
func (i *item) fail(err error) {
	i.account.Status, i.account.Error = Failed, err.Error()
	i.cause, i.damaged = err, errors.Is(err, fault.ErrIntegrity)
}

// withTag is the image that the tag of an image stands for, whatever digest the image is named by.
func (i *item) withTag() *item {
	at := &item{source: i.source, named: i.named, destination: i.destination}
	if at.named == nil {
		medium := i.onMedium()
		at.named = &medium
	}
	at.source.Digest = ""
	return at
}
