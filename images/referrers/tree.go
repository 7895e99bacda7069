package referrers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/sigblob"
)

// The ends of the tags that cosign derives from the digest of an image.
const (
	Signatures   = ".sig"
	Attestations = ".att"
	SBOM         = ".sbom"
)

// tagEnds are the ends of the tags that are looked for.
var tagEnds = []string{Signatures, Attestations, SBOM}

// TagOf returns a tag that is derived from the digest of an image, such as sha256-HEX.sig. The digest must be valid.
func TagOf(d digest.Digest, end string) string { return reflist.Tag(d) + end }

// Tree is an image or an attachment, and what is attached to it.
type Tree struct {
	// Referrer is the manifest; its Text is empty for images.
	Referrer
	// Tag is the tag of a tagged attachment; empty for others.
	Tag string
	// Attached are the tagged attachments and then the referrers, in the order of their list.
	Attached []*Tree
	// Instances are the entries of an index.
	Instances []*Tree
	// Problems are what is listed wrongly.
	Problems []*Problem
}

// ReadTree reads what is attached to an image, on the entries of its index and on the attachments themselves. Each
// manifest is read once: one that is listed again is passed over, so that loops end. What is deeper than the limit is a
// problem. Errors are those of [List].
func ReadTree(ctx context.Context, r store.Reader, image store.Image, limits store.Limits) (*Tree, error) {
	t := &treeReader{budget: budget{limits: limits.WithDefaults()}, r: r, seen: map[digest.Digest]bool{}}
	root := &Tree{Referrer: Referrer{Descriptor: image.Top}}
	all := []*Tree{root}
	for _, i := range image.Instances {
		one := &Tree{Referrer: Referrer{Descriptor: i}}
		root.Instances = append(root.Instances, one)
		all = append(all, one)
	}
	for _, one := range all {
		t.seen[one.Digest] = true
	}
	// One level after the other, so that a manifest stands where it is nearest to the image.
	for depth := 1; len(all) > 0; depth++ {
		next, err := t.level(ctx, all, depth)
		if err != nil {
			return nil, err
		}
		all = next
	}
	return root, nil
}

// treeReader reads one tree.
type treeReader struct {
	budget
	r store.Reader

	mu   sync.Mutex
	seen map[digest.Digest]bool
}

// first tells whether a manifest is met for the first time.
func (t *treeReader) first(d digest.Digest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.seen[d]
	t.seen[d] = true
	return !before
}

// level reads what is attached to manifests, and returns it.
func (t *treeReader) level(ctx context.Context, on []*Tree, depth int) ([]*Tree, error) {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(manifestsAtOnce)
	found := make([][]*Tree, len(on))
	for i, one := range on {
		g.Go(func() (err error) {
			found[i], err = t.on(gctx, one)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var next []*Tree
	for i, one := range on {
		for _, a := range found[i] {
			if !t.first(a.Digest) {
				continue
			}
			if depth > t.limits.Depth {
				one.Problems = append(one.Problems, &Problem{Digest: a.Digest, Subject: one.Digest,
					Err: fmt.Errorf("%w: referrers of referrers, more than %d deep", fault.ErrLimit, t.limits.Depth)})
				continue
			}
			one.Attached = append(one.Attached, a)
			next = append(next, a)
		}
	}
	return next, nil
}

// on reads what is attached to one manifest.
func (t *treeReader) on(ctx context.Context, one *Tree) (found []*Tree, err error) {
	for _, end := range tagEnds {
		tagged, err := t.tagged(ctx, t.r, one.Digest, end)
		if isProblem(err) || errors.Is(err, store.ErrHidden) {
			one.Problems = append(one.Problems, &Problem{Subject: one.Digest,
				Digest: digest.Digest(TagOf(one.Digest, end)), Err: err})
			continue
		}
		if err != nil {
			return nil, err
		}
		if tagged != nil {
			found = append(found, &Tree{Referrer: *tagged, Tag: TagOf(one.Digest, end)})
		}
	}
	listed, problems, err := t.list(ctx, t.r, one.Digest)
	if errors.Is(err, store.ErrHidden) {
		problems, err = []*Problem{{Digest: "referrers", Subject: one.Digest, Err: err}}, nil
	}
	if err != nil {
		return nil, err
	}
	one.Problems = append(one.Problems, problems...)
	for _, l := range listed {
		found = append(found, &Tree{Referrer: l})
	}
	return found, nil
}

// tagged reads a tagged attachment; nil if there is none.
func (b *budget) tagged(ctx context.Context, r store.Reader, d digest.Digest, end string) (*Referrer, error) {
	tag := TagOf(d, end)
	text, mediaType, err := r.Manifest(ctx, tag)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tag %s: %w", tag, err)
	}
	if err := b.take(len(text)); err != nil {
		return nil, errBudget{err}
	}
	is, _, err := reflist.Describe(text, mediaType)
	if err != nil {
		return nil, fmt.Errorf("tag %s: %w", tag, err)
	}
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("tag %s: %w: manifest: %v", tag, fault.ErrInvalid, err)
	}
	if err := CheckTagged(tag, text); err != nil {
		return nil, fmt.Errorf("tag %s: %w", tag, err)
	}
	return &Referrer{Descriptor: is, Text: text, Layers: m.Layers}, nil
}

// CheckTagged returns an error if the manifest of a tag is not what the tag says: the tag of signatures, attestations
// or a bill of materials, sha256-HEX.sig and so on, and an image or an index, or the tag of signatures and none of the
// layers is one. Other tags may have anything.
func CheckTagged(tag string, text []byte) error {
	if !reflist.Belongs(tag) || !slices.Contains(tagEnds, path.Ext(tag)) {
		return nil
	}
	p, err := store.PartsOf(text)
	if err != nil {
		return err
	}
	if len(p.Manifests) > 0 {
		return fmt.Errorf("%w: it is an index of images", fault.ErrInvalid)
	}
	signed := false
	for _, l := range p.Layers {
		for _, prefix := range []string{"application/vnd.oci.image.layer.", "application/vnd.docker.image.rootfs."} {
			if strings.HasPrefix(l.MediaType, prefix) {
				return fmt.Errorf("%w: it is an image, with a layer of type %.80q", fault.ErrInvalid, l.MediaType)
			}
		}
		signed = signed || l.MediaType == sigblob.MediaType
	}
	if path.Ext(tag) == Signatures && !signed {
		return fmt.Errorf("%w: it has no signature", fault.ErrInvalid)
	}
	return nil
}
