package signature

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

// VerifyOptions configure [VerifyOptions.Verify].
type VerifyOptions struct {
	// Keys are those that are trusted. Any one of them suffices, or one of the Identities.
	Keys []PublicKey
	// Identities, unless nil, are trusted beside the keys.
	Identities Identities
	// Identity, unless zero, is the name that signatures in .sig tags must have been made for. Bundles have no
	// identity.
	Identity Identity
	// Now is the time that certificates must be valid at; the present if zero.
	Now time.Time
	// Type is the type of predicate of the attestations to look for; empty, or [PredicateSign], looks for signatures.
	Type string
}

// Verify looks for signatures or attestations of an image and verifies them. An index is verified if it is signed
// itself, or if each of the instances is. One good signature is enough, whatever stands beside it; all are reported.
//
// What is wrong with a signature is a Finding and no error. An error is what kept Verify from looking, such as one of
// the registry: that an image is unsigned is only known if every list was read.
func (o VerifyOptions) Verify(ctx context.Context, r store.Reader, image store.Image) (*Report, error) {
	if len(o.Keys) == 0 && o.Identities == nil {
		return nil, fmt.Errorf("%w: there is no key and no identity to verify with", fault.ErrInvalid)
	}
	o.Type = cmp.Or(o.Type, PredicateSign)
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	report := &Report{Image: image.Top.Digest, Type: o.Type}
	left := newBudget()
	check := func(d v1.Descriptor) (bool, error) {
		v := &verifier{r: r, o: o, subject: d.Digest, left: left, findings: []finding{}}
		in := formAtt
		if o.Type == PredicateSign {
			in = formSig
		}
		err := errors.Join(v.documents(ctx, in, v.judge), v.documents(ctx, formBundle, v.judge))
		s := subjectReport{Digest: d.Digest, Findings: v.findings}
		if d.Platform != nil {
			s.Platform = d.Platform.OS + "/" + d.Platform.Architecture
		}
		s.Verified = slices.ContainsFunc(s.Findings, func(f finding) bool { return f.Verified })
		report.Subjects = append(report.Subjects, s)
		if s.Verified {
			err = nil
		}
		return s.Verified, err
	}
	verified, err := check(image.Top)
	switch {
	case verified && len(image.Instances) == 0:
		report.By = ByImage
	case verified:
		report.By = ByList
	case len(image.Instances) > 0:
		report.By = ByInstances
		for _, instance := range image.Instances {
			verified, err := check(instance)
			if err != nil {
				return nil, err
			}
			if !verified {
				report.By = ""
			}
		}
	}
	if report.Verified = report.By != ""; report.Verified {
		err = nil
	}
	return report, err
}

// verifier verifies what belongs to one subject.
type verifier struct {
	r        store.Reader
	o        VerifyOptions
	subject  digest.Digest
	left     *store.Budget
	findings []finding
}

// newFinder returns a verifier that finds the signatures or attestations that exist, and tells which of them one of the
// keys made.
func newFinder(r store.Reader, subject digest.Digest, predicateType string, keys ...PublicKey) *verifier {
	return &verifier{r: r, subject: subject, left: newBudget(), o: VerifyOptions{Keys: keys, Type: predicateType,
		Now: time.Now()}}
}

// judge verifies a document and adds the finding. An error means that the document could not be read for a reason that
// says nothing about it, such as a failed request: whether the image is signed is not known then.
func (v *verifier) judge(d document) error {
	f := finding{Form: string(d.in), Manifest: d.manifest}
	if d.layer != nil {
		f.Layer = d.layer.Digest
	}
	if d.err == nil {
		d.class, d.err = v.document(&f, d)
	}
	switch {
	case d.err != nil && d.class == "":
		return v.unread(d.err)
	case d.err != nil:
		f = finding{Form: f.Form, Manifest: f.Manifest, Layer: f.Layer, Key: f.Key, KeyType: f.KeyType, Class: d.class,
			Problem: d.err.Error()}
	default:
		f.Verified = true
	}
	v.findings = append(v.findings, f)
	return nil
}

// document verifies a document that was read.
func (v *verifier) document(f *finding, d document) (Class, error) {
	if d.in == formSig {
		return v.simple(f, d)
	}
	e, err := d.envelope()
	if err != nil {
		return classOf(err), err
	}
	return v.statement(f, e, d)
}

// envelope reads the envelope of an attestation or a bundle.
func (d document) envelope() (*envelope, error) {
	if d.in == formBundle {
		return parseBundle(d.content)
	}
	e, err := parseEnvelope(d.content)
	if err == nil {
		e.certificate, err = d.pemCertificate()
	}
	return e, err
}

// simple verifies a signature of a .sig tag: its bytes first, and then what they say.
func (v *verifier) simple(f *finding, d document) (Class, error) {
	encoded, ok := d.layer.Annotations[SignatureAnnotation]
	if !ok {
		return Malformed, fmt.Errorf("%w: the layer has no annotation %s", fault.ErrInvalid, SignatureAnnotation)
	}
	sig, err := decodeBase64(encoded)
	if err != nil {
		return Malformed, fmt.Errorf("annotation %s: %w", SignatureAnnotation, err)
	}
	certificate, err := d.pemCertificate()
	if err != nil {
		return Certificate, err
	}
	if class, err := v.made(f, d, signed{d.content, d.content, [][]byte{sig}, certificate}); err != nil {
		return class, err
	}
	p, err := parseSimple(d.content)
	switch {
	case err != nil:
		return Malformed, err
	case p.Digest != v.subject:
		return OtherSubject, fmt.Errorf("it signs %s", p.Digest)
	case v.o.Identity.name != nil && !v.o.Identity.accepts(p.Identity):
		return OtherIdentity, fmt.Errorf("it was made for %.300q and not for %s", p.Identity, v.o.Identity)
	}
	f.Identity = p.Identity
	return "", nil
}

// statement verifies the statement of an envelope: its bytes first, and then what they say.
func (v *verifier) statement(f *finding, e *envelope, d document) (Class, error) {
	if e.payloadType != statementMedia {
		return PayloadType, fmt.Errorf("the payload's type is %.100q, expected %q", e.payloadType, statementMedia)
	}
	if class, err := v.made(f, d, e.signed()); err != nil {
		return class, err
	}
	s, err := parseStatement(e.payload)
	switch {
	case err != nil:
		return classOf(err), err
	case !slices.Contains(s.Subjects, v.subject):
		return OtherSubject, errors.New("the statement is not about this image")
	case s.PredicateType != v.o.Type && v.o.Type == PredicateSign:
		return NotASignature, fmt.Errorf("it is an attestation of the type %.200q and no signature", s.PredicateType)
	case s.PredicateType != v.o.Type:
		return OtherPredicate, fmt.Errorf("it is an attestation of the type %.200q", s.PredicateType)
	}
	f.PredicateType = s.PredicateType
	if v.o.Type != PredicateSign {
		f.Predicate = json.RawMessage(s.Predicate)
	}
	return "", nil
}

// madeByKey finds the key that made one of the signatures.
func (v *verifier) madeByKey(f *finding, message []byte, sigs [][]byte, in form) (PublicKey, error) {
	for _, key := range v.o.Keys {
		for _, sig := range sigs {
			if key.verifies(message, sig, in) {
				f.Key, f.KeyType = key.Fingerprint(), key.Describe()
				return key, nil
			}
		}
	}
	if len(v.o.Keys) == 1 {
		return PublicKey{}, errors.New("this key did not make the signature")
	}
	return PublicKey{}, errors.New("none of these keys made the signature")
}

// classOf returns the class of an error about the form of a signature.
func classOf(err error) Class {
	if errors.Is(err, fault.ErrLimit) {
		return TooLarge
	}
	return Malformed
}
