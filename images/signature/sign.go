package signature

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
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
	// SigAlone, unless nil, is called once with an error of the class [store.ErrNoReferrers] if a place takes no bundles
	// and the signatures are written to .sig tags alone; otherwise that is an error of Attach. It is for [FormatBoth].
	SigAlone func(error)
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
	// CertificateIdentity is who made it, of a signature without a key of one's own.
	CertificateIdentity
	// Found tells that it was there already, and that nothing was written.
	Found bool `json:"found"`
}

// Sorted sorts the signatures of all destinations, and removes repetitions, so that the order of the destinations does not
// matter. A signature that existed at one destination and was made at another one is listed as both.
func Sorted(made []Made) []Made {
	key := func(m Made) string {
		return fmt.Sprint(m.Subject, m.Form, m.PredicateType, m.Key, m.Identity, m.Found)
	}
	slices.SortFunc(made, func(a, b Made) int { return strings.Compare(key(a), key(b)) })
	return slices.Compact(made)
}

// Signing signs images: the index and every image of it. It implements [store.Attachment]. A signature by the same
// key for the same image that is there already is not made again, so that an image may be signed any number of times.
type Signing struct {
	o     SignOptions
	alone sync.Once
	account
}

var _ store.Attachment = (*Signing)(nil)

// NewSigning returns an attachment that signs.
func NewSigning(o SignOptions) *Signing {
	o.Format = cmp.Or(o.Format, FormatBoth)
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
	subjects, bundles := image.Subjects(), s.o.Format != FormatSig
	if bundles {
		// What takes no bundles says so before anything else is written, so that no image is signed by half.
		err := referrers.CheckTaken(ctx, to, subjects...)
		if err == nil {
			err = s.bundles(ctx, to, subjects[0], keys)
		}
		if errors.Is(err, store.ErrNoReferrers) && s.o.Format == FormatBoth && s.o.SigAlone != nil {
			s.alone.Do(func() { s.o.SigAlone(err) })
			bundles, err = false, nil
		}
		if err != nil {
			return err
		}
	}
	g, ctx := guard.WithContext(ctx)
	g.SetLimit(subjectsAtOnce)
	for n, subject := range subjects {
		if s.o.Format != FormatBundle {
			g.Go(func() error { return s.tag(ctx, to, subject, keys, names) })
		}
		if bundles && n > 0 {
			g.Go(func() error { return s.bundles(ctx, to, subject, keys) })
		}
	}
	return g.Wait()
}

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
	v := newFinder(to, subject.Digest, PredicateSign, public...)
	err := v.present(ctx, formSig, func(d document) {
		f := finding{}
		if _, err := v.simple(&f, d); err == nil {
			found[maker{f.Key, f.Identity}] = true
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
				payload, err := simplePayload{name, subject.Digest}.encode(s.o.Creator)
				if err != nil {
					return err
				}
				annotations, err := annotate(ctx, key, payload)
				if err != nil {
					return err
				}
				layer := v1.Descriptor{MediaType: simpleSigningType, Digest: digest.FromBytes(payload),
					Size: int64(len(payload)), Annotations: annotations}
				err = checkMade(key, subject.Digest, PredicateSign, document{in: formSig, layer: &layer, content: payload})
				if err != nil {
					return err
				}
				made.by(key)
				added = append(added, layer)
				payloads = append(payloads, payload)
			}
			defer s.addMade(made)
		}
	}
	return referrers.AppendLayers(ctx, to, referrers.TagOf(subject.Digest, referrers.Signatures), added, payloads...)
}

// bundles adds bundles with signatures to the referrers of a subject.
func (s *Signing) bundles(ctx context.Context, to store.Writer, subject v1.Descriptor, keys []Signer) error {
	text, err := newStatement(subject.Digest, PredicateSign, []byte("{}"))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.bundle(ctx, to, subject, key, PredicateSign, text, s.o.Created); err != nil {
			return err
		}
	}
	return nil
}

// checkMade verifies what was signed as those will who read it, before it is written: a signature that no verifier
// accepts is worse than none.
func checkMade(key Signer, subject digest.Digest, predicateType string, d document) error {
	v := newFinder(nil, subject, predicateType, key.Public())
	if c, ok := key.(Certified); ok {
		v.o.Keys, v.o.Identities = nil, c.Verifier()
	}
	if _, err := v.document(&finding{}, d); err != nil {
		return fmt.Errorf("%w, and is not written: %w", ErrNotVerified, err)
	}
	return nil
}

// Check signs a subject by a bundle and verifies the signature, without writing anything: for what is written before its
// signature.
func (s *Signing) Check(ctx context.Context, subject v1.Descriptor) error {
	keys, err := s.o.Keys(ctx)
	if err != nil {
		return err
	}
	text, err := newStatement(subject.Digest, PredicateSign, []byte("{}"))
	for _, key := range keys {
		if err == nil {
			_, err = checkedBundle(ctx, key, subject.Digest, PredicateSign, text)
		}
	}
	return err
}

// checkedBundle signs a statement and returns the text of a bundle that verifiers accept.
func checkedBundle(ctx context.Context, key Signer, subject digest.Digest, predicateType string, statement []byte) ([]byte, error) {
	content, err := signBundle(ctx, key, statement)
	if err != nil {
		return nil, err
	}
	return content, checkMade(key, subject, predicateType, document{in: formBundle, content: content})
}

// account collects what was made.
type account struct {
	mu   sync.Mutex
	made []Made
}

func (a *account) addMade(m Made) {
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

// bundle signs a statement and writes it as a referrer of its subject, unless there is one with the same predicate by
// the same key.
func (a *account) bundle(ctx context.Context, to store.Writer, subject v1.Descriptor, key Signer,
	predicateType string, text []byte, created time.Time) error {
	made := Made{Subject: subject.Digest, Form: string(formBundle), Key: key.Public().Fingerprint()}
	wanted, err := parseStatement(text)
	if err != nil {
		return err
	}
	if predicateType == PredicateSign {
		wanted.Predicate = nil // a signature's predicate is empty, and findings have none
	} else {
		made.PredicateType = predicateType
	}
	v := newFinder(to, subject.Digest, predicateType, key.Public())
	if err := v.documents(ctx, formBundle, v.judge); err != nil {
		return err
	}
	made.Found = slices.ContainsFunc(v.findings, func(f finding) bool {
		return f.Verified && bytes.Equal(f.Predicate, wanted.Predicate)
	})
	if !made.Found {
		content, err := checkedBundle(ctx, key, subject.Digest, predicateType, text)
		if err != nil {
			return err
		}
		made.by(key)
		_, err = referrers.Attach(ctx, to, subject, referrers.Artifact{
			Type: BundleType, Content: content, Created: created,
			Annotations: map[string]string{"dev.sigstore.bundle.content": "dsse-envelope",
				"dev.sigstore.bundle.predicateType": predicateType},
		})
		if err != nil {
			return err
		}
	}
	a.addMade(made)
	return nil
}
