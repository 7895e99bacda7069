package referrers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/redact"
)

// Kinds are the kinds of attachments that are copied.
type Kinds struct {
	// Tags are the tagged attachments: .sig, .att and .sbom.
	Tags bool
	// Referrers are the manifests with a subject.
	Referrers bool
}

// Copied is one attachment in an [Account].
type Copied struct {
	Digest digest.Digest `json:"digest"`
	// Subject is what it is attached to.
	Subject digest.Digest `json:"subject"`
	// Tag is the tag of a tagged attachment.
	Tag string `json:"tag,omitempty"`
	// Type is the artifact type of a referrer.
	Type string `json:"artifactType,omitempty"`
	// Bytes is the size of the manifest and its blobs.
	Bytes int64 `json:"bytes"`
	// There tells that the destination had the attachment already.
	There bool `json:"there,omitempty"`
	// Added tells that the tag at the destination had other content, to which this was added, so that the manifest has
	// another digest there.
	Added bool `json:"added,omitempty"`
}

// Account is what [Copy] has done.
type Account struct {
	Copied []Copied `json:"attachments"`
	// Problems describe the attachments that are not copied, because their content does not match how they are listed.
	Problems []string `json:"problems,omitempty"`
	// Unread are what could not be read at the source: tags that it refuses, and of [CopyReadable] all else.
	Unread []unread `json:"unread,omitempty"`
}

// unread is something that may hang on an image, and that the source did not show: registries refuse what is not there
// for anonymous clients (401, 403), or fail.
type unread struct {
	// Subject is what it would hang on, and Tag its tag; empty for a referrer or for their list.
	Subject digest.Digest `json:"subject"`
	Tag     string        `json:"tag,omitempty"`
	// Answer is the text of Err, without credentials.
	Answer string `json:"answer"`
	Err    error  `json:"-"`
}

// subjectsAtOnce is how many subjects are copied concurrently.
const subjectsAtOnce = 4

// Copy copies what is attached to images: of each digest the tagged attachments and the referrers, and what is attached
// to these, as deep as [store.Limits] allow. Every manifest is copied byte for byte, and what the destination has is
// not sent again. A tag that stands for something else at the destination loses nothing: its layers stay, and those
// that are missing are added, which gives a manifest of another digest. Errors are those of the two places, and of the
// class [fault.ErrLimit]; what is listed wrongly is a problem in the account, and so is, as unread, a tag that the
// source does not allow to look at: registries refuse tags that are not there.
func Copy(ctx context.Context, from store.Reader, to store.Writer, digests []digest.Digest, what Kinds,
	limits store.Limits) (Account, error) {
	return (&copying{budget: limits.NewBudget(), from: from, to: to, what: what}).run(ctx, digests)
}

// CopyReadable is like [Copy], for images whose attachments may be missing: what the source does not show is in the
// account and no error. Errors are those of the destination and of the context, and of the class images.ErrLimit for
// all together.
func CopyReadable(ctx context.Context, from store.Reader, to store.Writer, digests []digest.Digest, what Kinds,
	limits store.Limits) (Account, error) {
	return (&copying{budget: limits.NewBudget(), from: from, to: to, what: what, lenient: true}).run(ctx, digests)
}

func (c *copying) run(ctx context.Context, digests []digest.Digest) (Account, error) {
	done := map[digest.Digest]bool{}
	account := Account{Copied: []Copied{}}
	for depth := 1; len(digests) > 0; depth++ {
		var next []digest.Digest
		digests = slices.DeleteFunc(slices.Clone(digests), func(d digest.Digest) bool {
			before := done[d]
			done[d] = true
			return before
		})
		parts := make([]Account, len(digests))
		err := guard.Each(ctx, subjectsAtOnce, digests, func(ctx context.Context, i int, d digest.Digest) (err error) {
			parts[i], err = c.copyAttached(ctx, d, depth > c.budget.Limits.Depth)
			return err
		})
		if err != nil {
			return account, err
		}
		for _, p := range parts {
			account.Problems = append(account.Problems, p.Problems...)
			account.Unread = append(account.Unread, p.Unread...)
			account.Copied = append(account.Copied, p.Copied...)
			for _, one := range p.Copied {
				next = append(next, one.Digest)
			}
		}
		digests = next
	}
	return account, nil
}

// copying is one run of [Copy].
type copying struct {
	budget *store.Budget
	from   store.Reader
	to     store.Writer
	what   Kinds
	// lenient tells that whatever cannot be read at the source is passed over, and not only tags that it refuses.
	lenient bool
}

// passOver adds an error of reading the source to the account if that is passed over, and returns it if not.
func (c *copying) passOver(ctx context.Context, a *Account, subject digest.Digest, tag string, err error) error {
	var all errBudget
	var source *store.SourceError
	if ctx.Err() != nil || errors.As(err, &all) || !errors.As(err, &source) {
		return err
	}
	if !c.lenient && !errors.Is(source.Err, store.ErrHidden) {
		return err
	}
	a.Unread = append(a.Unread, unread{Subject: subject, Tag: tag, Answer: redact.Text(source.Err.Error()),
		Err: redact.Error(source.Err)})
	return nil
}

// copyAttached copies what is attached to one subject. Beyond the depth it only reports that there is something.
func (c *copying) copyAttached(ctx context.Context, subject digest.Digest, beyond bool) (a Account, err error) {
	settle := func(name, tag string, one Copied, err error) error {
		switch {
		case err == nil:
			a.Copied = append(a.Copied, one)
		case isProblem(err):
			p := Problem{Digest: digest.Digest(name), Subject: subject, Err: err}
			a.Problems = append(a.Problems, p.Error())
		default:
			return c.passOver(ctx, &a, subject, tag, err)
		}
		return nil
	}
	tooDeep := fmt.Errorf("%w: not copied, more than %d deep", fault.ErrLimit, c.budget.Limits.Depth)
	for _, end := range TagEnds() {
		if !c.what.Tags {
			break
		}
		tag := TagOf(subject, end)
		found, err := readTagged(ctx, c.from, tag, c.budget)
		if err == nil && found == nil {
			continue
		}
		var one Copied
		switch {
		case err == nil && beyond:
			err = tooDeep
		case err == nil:
			one, err = c.tag(ctx, subject, tag, found)
		case !isProblem(err):
			err = &store.SourceError{Err: err}
		}
		if err := settle(tag, tag, one, err); err != nil {
			return a, err
		}
	}
	if !c.what.Referrers {
		return a, nil
	}
	listed, problems, err := List(ctx, c.from, subject, c.budget)
	if err != nil {
		err = c.passOver(ctx, &a, subject, "", &store.SourceError{Err: err})
		return a, err
	}
	if len(listed)+len(problems) == 0 {
		return a, nil
	}
	for _, p := range problems {
		a.Problems = append(a.Problems, p.Error())
	}
	var there []v1.Descriptor
	if !c.to.Can().Unattached {
		if there, err = c.to.Referrers(ctx, subject, nil); err != nil {
			return a, err
		}
	}
	for _, l := range listed {
		one, err := Copied{}, tooDeep
		if !beyond {
			one, err = c.referrer(ctx, subject, l, there)
		}
		if err := settle(l.Digest.String(), "", one, err); err != nil {
			return a, err
		}
	}
	return a, nil
}

// referrer copies one referrer, unless it is among those that are listed at the destination.
func (c *copying) referrer(ctx context.Context, subject digest.Digest, l Referrer,
	there []v1.Descriptor) (Copied, error) {
	one := Copied{Digest: l.Digest, Subject: subject, Type: l.ArtifactType}
	parts, err := store.PartsOf(l.Text)
	if err != nil {
		return one, err
	}
	one.Bytes = int64(len(l.Text)) + parts.Size()
	if slices.ContainsFunc(there, func(d v1.Descriptor) bool { return d.Digest == l.Digest }) {
		has, err := c.isThere(ctx, l.Digest)
		if has || err != nil {
			one.There = true
			return one, err
		}
	}
	if err := c.content(ctx, &l, parts); err != nil {
		return one, err
	}
	return one, c.to.WriteManifest(ctx, l.Text, l.MediaType, store.WriteOptions{})
}

// isThere tells whether the destination has a manifest.
func (c *copying) isThere(ctx context.Context, d digest.Digest) (bool, error) {
	_, _, err := c.to.Manifest(ctx, d.String())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.ErrIntegrity) {
		return false, nil
	}
	return err == nil, err
}

// tag copies a tagged attachment.
func (c *copying) tag(ctx context.Context, subject digest.Digest, tag string, found *Referrer) (Copied, error) {
	one := Copied{Digest: found.Digest, Subject: subject, Tag: tag}
	parts, err := store.PartsOf(found.Text)
	if err != nil {
		return one, err
	}
	one.Bytes = int64(len(found.Text)) + parts.Size()
	if !c.to.Can().Unattached {
		old, _, err := c.to.Manifest(ctx, tag)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return one, err
		}
		if one.There = err == nil && (digest.FromBytes(old) == found.Digest || hasLayersOf(old, found)); one.There {
			return one, nil
		}
	}
	if err := c.content(ctx, found, parts); err != nil {
		return one, err
	}
	lasting := context.WithoutCancel(ctx)
	err = c.to.UpdateTag(ctx, tag, func(old []byte) ([]byte, string, error) {
		one.Added = false
		if old == nil {
			return found.Text, found.MediaType, nil
		}
		if digest.FromBytes(old) == found.Digest || hasLayersOf(old, found) {
			return nil, "", nil
		}
		var has v1.Manifest
		if err := json.Unmarshal(old, &has); err != nil {
			return nil, "", fmt.Errorf("the manifest of %s at the destination: %w: %v", tag, fault.ErrInvalid, err)
		}
		if hasLayersOf(found.Text, &Referrer{Layers: has.Layers}) {
			return found.Text, found.MediaType, nil // the new manifest has all layers of the old one
		}
		if tag == TagOf(subject, SBOM) {
			return nil, "", fmt.Errorf("%w: the destination has another, which stays", fault.ErrInvalid)
		}
		if len(has.Layers)+len(found.Layers) > sigblob.MaxCount {
			return nil, "", fmt.Errorf("%w: more than %d layers with those at the destination", fault.ErrLimit,
				sigblob.MaxCount)
		}
		one.Added = true
		return withLayers(lasting, c.to, tag, old, found.Layers)
	})
	return one, err
}

// hasLayersOf tells whether the manifest of a tag has all layers of another one.
func hasLayersOf(text []byte, of *Referrer) bool {
	var has v1.Manifest
	return json.Unmarshal(text, &has) == nil && len(of.Layers) > 0 && !slices.ContainsFunc(of.Layers,
		func(l v1.Descriptor) bool { return !hasLayer(has.Layers, l) })
}

// content copies the blobs and manifests that a manifest refers to, without its subject. A manifest in an index is
// written after what it refers to.
func (c *copying) content(ctx context.Context, of *Referrer, parts *store.Parts) error {
	read := func(ctx context.Context, n *store.Node) error {
		has, err := c.isThere(ctx, n.Digest)
		if has || err != nil {
			return err
		}
		if n.Text, n.Kind, err = c.from.Manifest(ctx, n.Digest.String()); err != nil {
			return &store.SourceError{Err: err}
		}
		if err := c.budget.TakeManifest(len(n.Text)); err != nil {
			return errBudget{err}
		}
		if n.Parts, err = store.PartsOf(n.Text); err == nil && n.Parts.Subject != nil {
			// It would be listed among the referrers of an image that is not copied.
			err = fmt.Errorf("%w: %s in an index has a subject", fault.ErrInvalid, n.Digest)
		}
		return err
	}
	visit := func(ctx context.Context, n *store.Node) error {
		if n.Parts == nil {
			return nil
		}
		for _, d := range n.Parts.Blobs {
			if err := c.blob(ctx, d); err != nil {
				return err
			}
		}
		return nil
	}
	leave := func(ctx context.Context, n *store.Node) error {
		if n.Parts == nil || n.Above == nil {
			return nil
		}
		return c.to.WriteManifest(ctx, n.Text, n.Kind, store.WriteOptions{})
	}
	return store.Walk(ctx, store.Node{Text: of.Text, Parts: parts},
		store.WalkOptions{Read: read, Visit: visit, Leave: leave})
}

func (c *copying) blob(ctx context.Context, d v1.Descriptor) error {
	if err := c.budget.TakeContent(d.Size, "attachments"); err != nil {
		return errBudget{err}
	}
	_, err := c.to.WriteBlob(ctx, d, store.ContentOf(c.from, d))
	return err
}
