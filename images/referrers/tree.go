package referrers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/reflist"
)

// The ends of the tags that cosign derives from the digest of an image.
const (
	Signatures   = ".sig"
	Attestations = ".att"
	SBOM         = ".sbom"
)

// TagEnds returns all of these ends.
func TagEnds() []string { return []string{Signatures, Attestations, SBOM} }

// IsTag tells whether a tag is one that cosign derives from the digest of an image.
func IsTag(tag string) bool { return reflist.Belongs(tag) && slices.Contains(TagEnds(), path.Ext(tag)) }

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
	t := &treeReader{r: r, budget: limits.NewBudget(), seen: map[digest.Digest]bool{}}
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
	r      store.Reader
	budget *store.Budget
	seen   map[digest.Digest]bool
}

// level reads what is attached to manifests, and returns it.
func (t *treeReader) level(ctx context.Context, on []*Tree, depth int) ([]*Tree, error) {
	found := make([][]*Tree, len(on))
	err := guard.Each(ctx, manifestsAtOnce, on, func(ctx context.Context, i int, one *Tree) (err error) {
		found[i], err = t.readAttached(ctx, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	var next []*Tree
	for i, one := range on {
		for _, a := range found[i] {
			if t.seen[a.Digest] {
				continue
			}
			t.seen[a.Digest] = true
			if most := t.budget.Limits.Depth; depth > most {
				one.problem(a.Digest, fmt.Errorf("%w: referrers of referrers, more than %d deep", fault.ErrLimit, most))
				continue
			}
			one.Attached = append(one.Attached, a)
			next = append(next, a)
		}
	}
	return next, nil
}

// problem notes that something is listed wrongly.
func (t *Tree) problem(d digest.Digest, err error) {
	t.Problems = append(t.Problems, &Problem{Digest: d, Subject: t.Digest, Err: err})
}

// readAttached reads what is attached to one manifest.
func (t *treeReader) readAttached(ctx context.Context, one *Tree) (found []*Tree, err error) {
	for _, end := range TagEnds() {
		tag := TagOf(one.Digest, end)
		tagged, err := readTagged(ctx, t.r, tag, t.budget)
		if isProblem(err) || errors.Is(err, store.ErrHidden) {
			one.problem(digest.Digest(tag), err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if tagged != nil {
			found = append(found, &Tree{Referrer: *tagged, Tag: tag})
		}
	}
	listed, problems, err := List(ctx, t.r, one.Digest, t.budget)
	if errors.Is(err, store.ErrHidden) {
		one.problem("referrers", err)
		return found, nil
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

// readTagged reads the attachment with a tag; nil if there is none.
func readTagged(ctx context.Context, r store.Reader, tag string, budget *store.Budget) (*Referrer, error) {
	text, mediaType, err := r.Manifest(ctx, tag)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found *Referrer
	if err == nil {
		found, _, err = describe(text, mediaType, budget)
	}
	if err == nil {
		err = CheckTagged(tag, text)
	}
	if err != nil {
		return nil, fmt.Errorf("tag %s: %w", tag, err)
	}
	return found, nil
}

// CheckTagged checks that the manifest of an attachment's tag (sha256-HEX.sig, .att or .sbom) is an attachment: not an
// image and not an index, and for .sig with a layer that is a signature. It accepts everything under other tags.
func CheckTagged(tag string, text []byte) error {
	if !IsTag(tag) {
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
