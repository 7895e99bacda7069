package signature

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Attesting attests something of images, in bundles that are referrers. It implements [store.Attachment]. An
// attestation by the same key with the same predicate that is there already is not made again.
type Attesting struct {
	Keys Keys
	// Type is the predicate's type, a URI.
	Type string
	// Predicate returns the predicate about a manifest or index: a JSON object; nil leaves it without an attestation.
	Predicate func(ctx context.Context, subject v1.Descriptor) (json.RawMessage, error)
	// Legacy also writes the attestation to the tag sha256-HEX.att, which verifiers before cosign 3 read.
	Legacy bool
	// AttAlone, unless nil, is called once with an error of the class [store.ErrNoReferrers] if a place takes no bundles and
	// the attestations are written to .att tags alone; otherwise that is an error of Attach. It is for Legacy.
	AttAlone func(error)
	// Created is the time in the annotations of referrers; 1970 if zero.
	Created time.Time

	account
	alone sync.Once
}

var _ store.Attachment = (*Attesting)(nil)

// Attach implements [store.Attachment].
func (a *Attesting) Attach(ctx context.Context, to store.Writer, image store.Image) error {
	keys, err := a.Keys(ctx)
	if err != nil {
		return err
	}
	var about []v1.Descriptor
	var texts [][]byte
	for _, subject := range image.Subjects() {
		predicate, err := a.Predicate(ctx, subject)
		if err != nil {
			return err
		}
		if predicate == nil {
			continue
		}
		if err := CheckPredicate(predicate); err != nil {
			return err
		}
		text, err := newStatement(subject.Digest, a.Type, predicate)
		if err != nil {
			return err
		}
		about, texts = append(about, subject), append(texts, text)
	}
	// What takes no bundles says so before anything else is written.
	err = referrers.CheckTaken(ctx, to, about...)
	for n, subject := range about {
		for _, key := range keys {
			if err == nil {
				err = a.bundle(ctx, to, subject, key, a.Type, texts[n], a.Created)
			}
			refused := errors.Is(err, store.ErrNoReferrers) && a.Legacy && a.AttAlone != nil
			if refused {
				a.alone.Do(func() { a.AttAlone(err) })
			}
			if a.Legacy && (err == nil || refused) {
				failed := a.legacy(ctx, to, subject, key, texts[n])
				if failed != nil {
					return failed
				}
			}
			if err != nil && !refused {
				return err
			}
		}
	}
	return nil
}

// CheckPredicate returns an error for a predicate that is no JSON object, has a member twice, or is too large for
// verifiers.
func CheckPredicate(predicate json.RawMessage) error {
	if err := *parseObject(predicate).err; err != nil {
		return fmt.Errorf("predicate: %w", err)
	}
	if len(predicate) > maxAttestation/4*3-4096 {
		return fmt.Errorf("predicate: %w: %d bytes; verifiers read attestations of at most %d bytes",
			fault.ErrLimit, len(predicate), maxAttestation)
	}
	return nil
}

// legacy writes the attestation to the .att tag.
func (a *Attesting) legacy(ctx context.Context, to store.Writer, subject v1.Descriptor, key Signer,
	text []byte) error {
	if _, certified := key.(Certified); certified {
		return fmt.Errorf("%w: the tag .att has no form for a signature with a certificate", errors.ErrUnsupported)
	}
	v := newFinder(to, subject.Digest, a.Type, key.Public())
	made := Made{Subject: subject.Digest, Form: string(formAtt), PredicateType: a.Type,
		Key: key.Public().Fingerprint()}
	defer func() { a.addMade(made) }()
	err := v.present(ctx, formAtt, func(d document) {
		e, err := d.envelope()
		if err != nil || !bytes.Equal(e.payload, text) {
			return
		}
		message := preAuthEncoding(e.payloadType, e.payload)
		_, err = v.madeByKey(&finding{}, message, e.signatures, formAtt)
		made.Found = made.Found || err == nil
	})
	if err != nil || made.Found {
		return err
	}
	content, err := signEnvelope(ctx, key, text)
	if err != nil {
		return err
	}
	layer := v1.Descriptor{MediaType: envelopeMedia, Digest: digest.FromBytes(content), Size: int64(len(content)),
		Annotations: map[string]string{SignatureAnnotation: "", "predicateType": a.Type}}
	if err := checkMade(key, subject.Digest, a.Type, document{in: formAtt, layer: &layer, content: content}); err != nil {
		return err
	}
	return referrers.AppendLayers(ctx, to, referrers.TagOf(subject.Digest, referrers.Attestations),
		[]v1.Descriptor{layer}, content)
}

// signEnvelope returns the text of an envelope with a signed statement.
func signEnvelope(ctx context.Context, key Signer, statement []byte) ([]byte, error) {
	sig, err := key.Sign(ctx, preAuthEncoding(statementMedia, statement))
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return encodeEnvelope(statement, sig)
}
