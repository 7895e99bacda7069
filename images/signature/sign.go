package signature

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/sigblob"
)

// Format is a form of signatures.
type Format string

// The values of [Format].
const (
	FormatSig    Format = "sig"    // the tag sha256-HEX.sig, which policies of the containers tools read
	FormatBundle Format = "bundle" // a Sigstore bundle v0.3 as a referrer, which cosign 3 reads
	FormatBoth   Format = "both"
)

// ParseFormat reads a format; empty is [FormatBoth].
func ParseFormat(text string) (Format, error) {
	switch f := Format(text); f {
	case "":
		return FormatBoth, nil
	case FormatSig, FormatBundle, FormatBoth:
		return f, nil
	}
	return "", fmt.Errorf("%w: format of signatures %.40q, expected (sig|bundle|both)", fault.ErrInvalid, text)
}

// Keys returns the keys to sign with. It may wait until encrypted keys are open.
type Keys func(ctx context.Context) ([]Signer, error)

// SignOptions configure [NewSigning].
type SignOptions struct {
	Keys   Keys
	Format Format // [FormatBoth] if empty
	// Identities are the names in .sig signatures, REPOSITORY:TAG; by default the name of the image at its
	// destination, or Names if it has none there, as in a layout.
	Identities, Names []string
	// Creator is the program that is named in .sig signatures.
	Creator string
	// Created is the time in the annotations of referrers; 1970 if zero.
	Created time.Time
}

// Made is a signature or an attestation of one manifest or index, after it was written.
type Made struct {
	Subject digest.Digest `json:"subject"`
	Form    string        `json:"form"`
	// PredicateType is that of an attestation.
	PredicateType string `json:"predicateType,omitempty"`
	// Key is the fingerprint of the key.
	Key      string `json:"key"`
	Identity string `json:"identity,omitempty"`
	// Found tells that it was there already, and that nothing was written.
	Found bool `json:"found"`
}

// Signing signs images: the index and every image of it. It implements [store.Attachment]. A signature by the same
// key for the same image that is there already is not made again, so that an image may be signed any number of times.
type Signing struct {
	o SignOptions
	account
}

var _ store.Attachment = (*Signing)(nil)

// NewSigning returns an attachment that signs.
func NewSigning(o SignOptions) *Signing {
	if o.Format == "" {
		o.Format = FormatBoth
	}
	return &Signing{o: o}
}

// subjectsAtOnce is how many manifests of an index are signed concurrently.
const subjectsAtOnce = 4

// Attach implements [store.Attachment].
func (s *Signing) Attach(ctx context.Context, to store.Writer, image store.Image) error {
	keys, err := s.o.Keys(ctx)
	if err != nil {
		return err
	}
	names := s.o.Identities
	if len(names) == 0 && image.Name != "" {
		names = []string{image.Name}
	}
	if len(names) == 0 {
		names = s.o.Names
	}
	if s.o.Format != FormatBundle && len(names) == 0 {
		return ErrNoIdentity
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(subjectsAtOnce)
	for _, subject := range image.Subjects() {
		if s.o.Format != FormatBundle {
			g.Go(func() error { return s.tag(ctx, to, subject, keys, names) })
		}
		if s.o.Format != FormatSig {
			g.Go(func() error { return s.bundle(ctx, to, subject, keys) })
		}
	}
	return g.Wait()
}

// ErrNoIdentity is the error of a signature in a .sig tag for an image without a name in a registry.
var ErrNoIdentity = fault.New(fault.Usage, "the image has no name in a registry that a signature could be for")

// tag adds signatures to the .sig tag of a subject.
func (s *Signing) tag(ctx context.Context, to store.Writer, subject v1.Descriptor, keys []Signer,
	names []string) error {
	// The contents of the layers are not kept: together they can be large.
	type maker struct{ key, identity string }
	var public []PublicKey
	for _, key := range keys {
		public = append(public, key.Public())
	}
	found := map[maker]bool{}
	v := newFinder(to, subject.Digest, PredicateSign)
	err := v.present(ctx, formSig, simpleSigningType, maxSignature, func(p presentLayer) {
		for _, key := range public {
			if fingerprint, identity, err := p.verified(subject.Digest, key); err == nil {
				found[maker{fingerprint, identity}] = true
			}
		}
	})
	if err != nil {
		return err
	}
	var added []v1.Descriptor
	var payloads [][]byte
	for _, key := range keys {
		for _, name := range names {
			made := Made{Subject: subject.Digest, Form: string(formSig), Key: key.Public().Fingerprint(),
				Identity: name}
			made.Found = found[maker{made.Key, name}]
			if !made.Found {
				layer, payload, err := s.layer(ctx, subject.Digest, key, name)
				if err != nil {
					return err
				}
				added, payloads = append(added, layer), append(payloads, payload)
			}
			defer s.note(made)
		}
	}
	return referrers.AppendLayers(ctx, to, referrers.TagOf(subject.Digest, referrers.Signatures), added, payloads...)
}

// layer makes a signature for a .sig tag, and its payload.
func (s *Signing) layer(ctx context.Context, subject digest.Digest, key Signer,
	name string) (layer v1.Descriptor, payload []byte, err error) {
	if payload, err = (simplePayload{name, subject}).encode(s.o.Creator); err != nil {
		return layer, nil, err
	}
	sig, err := key.Sign(ctx, payload)
	if err != nil {
		return layer, nil, fmt.Errorf("signing: %w", err)
	}
	layer = v1.Descriptor{MediaType: simpleSigningType, Digest: digest.FromBytes(payload), Size: int64(len(payload)),
		Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(sig)}}
	return layer, payload, nil
}

// bundle adds bundles with signatures to the referrers of a subject.
func (s *Signing) bundle(ctx context.Context, to store.Writer, subject v1.Descriptor, keys []Signer) error {
	for _, key := range keys {
		made := Made{Subject: subject.Digest, Form: string(formBundle), Key: key.Public().Fingerprint()}
		v := newFinder(to, subject.Digest, PredicateSign, key.Public())
		err := v.bundles(ctx)
		if err != nil {
			return err
		}
		if made.Found = v.found(); !made.Found {
			text, err := newStatement(subject.Digest, "", PredicateSign, []byte("{}"))
			if err != nil {
				return err
			}
			if err := writeBundle(ctx, to, subject, key, PredicateSign, text, s.o.Created); err != nil {
				return err
			}
		}
		s.note(made)
	}
	return nil
}

// account collects what was made.
type account struct {
	mu   sync.Mutex
	made []Made
}

func (a *account) note(m Made) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made = append(a.made, m)
}

// Made returns what was made or found so far, in an unspecified order.
func (a *account) Made() []Made {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.made)
}

// newFinder returns a verifier that looks for what is there already.
func newFinder(r store.Reader, subject digest.Digest, predicateType string, keys ...PublicKey) *verifier {
	return &verifier{r: r, subject: subject, left: newBudget(), o: VerifyOptions{Keys: keys, Type: predicateType,
		Now: time.Now()}}
}

// found tells whether something is verified.
func (v *verifier) found() bool {
	return slices.ContainsFunc(v.findings, func(f Finding) bool { return f.Verified })
}

// presentLayer is a layer of a .sig or .att tag.
type presentLayer struct {
	v1.Descriptor
	manifest digest.Digest
	content  []byte
}

// verified returns the fingerprint of the key that made the signature of a .sig layer, and the name that it is for. What
// [Verify] refuses is an error.
func (p presentLayer) verified(subject digest.Digest, keys ...PublicKey) (key, identity string, err error) {
	v := newFinder(nil, subject, PredicateSign, keys...)
	f := Finding{}
	_, err = v.simple(&f, p.Descriptor, p.content)
	return f.Key, f.Identity, err
}

// present calls a function for each layer of a tag, in their order. What cannot be understood is left out.
func (v *verifier) present(ctx context.Context, in form, mediaType string, most int64,
	visit func(presentLayer)) error {
	text, _, err := v.r.Manifest(ctx, v.tagOf(in))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the tag %s: %w", v.tagOf(in), err)
	}
	layers, err := sigblob.Layers(text)
	if err != nil {
		return fmt.Errorf("the tag %s: %w", v.tagOf(in), err)
	}
	for _, l := range layers {
		if l.MediaType != mediaType {
			continue
		}
		content, err := v.read(ctx, l, most)
		if err != nil {
			if err := v.unread(Finding{}, err); err != nil {
				return err
			}
			continue
		}
		visit(presentLayer{l, digest.FromBytes(text), content})
	}
	return nil
}
