package signature

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/sigblob"
)

// VerifyOptions configure [Verify].
type VerifyOptions struct {
	// Keys are those that are trusted. Any one of them suffices; there must be one.
	Keys []PublicKey
	// Identity, unless zero, is the name that signatures in .sig tags must have been made for. Bundles have no
	// identity.
	Identity Identity
	// Now is the time that certificates must be valid at; the present if zero.
	Now time.Time
	// Type is the type of predicate of the attestations to look for; empty, or [PredicateSign], looks for signatures.
	Type string
}

// The limits of what is read for one image.
const (
	maxSignature   = sigblob.MaxSize // bytes of a payload or a bundle with a signature
	maxAttestation = 16 << 20        // bytes of a bundle or an envelope with an attestation
	maxTotal       = 128 << 20
)

// Verify looks for signatures or attestations of an image and verifies them. An index is verified if it is signed
// itself, or if each of the instances is. One good signature is enough, whatever stands beside it; all are reported.
//
// What is wrong with a signature is a [Finding] and no error. An error is what kept Verify from looking, such as one of
// the registry: that an image is unsigned is only known if every list was read.
func Verify(ctx context.Context, r store.Reader, image store.Image, o VerifyOptions) (*Report, error) {
	if len(o.Keys) == 0 {
		return nil, fmt.Errorf("%w: there is no key to verify with", fault.ErrInvalid)
	}
	o.Type = cmp.Or(o.Type, PredicateSign)
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	report := &Report{Image: image.Top.Digest, Type: o.Type}
	left := newBudget()
	check := func(d v1.Descriptor) (bool, error) {
		v := &verifier{r: r, o: o, subject: d.Digest, left: left}
		err := v.all(ctx)
		s := SubjectReport{Digest: d.Digest, Findings: append([]Finding{}, v.findings...)}
		if d.Platform != nil {
			s.Platform = d.Platform.OS + "/" + d.Platform.Architecture
		}
		s.Verified = slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Verified })
		report.Subjects = append(report.Subjects, s)
		if s.Verified {
			return true, nil
		}
		return false, err
	}
	verified, err := check(image.Top)
	if verified {
		report.Verified, report.By = true, ByImage
		if len(image.Instances) > 0 {
			report.By = ByList
		}
		return report, nil
	}
	every := len(image.Instances) > 0
	for _, instance := range image.Instances {
		verified, ierr := check(instance)
		if ierr != nil {
			return nil, ierr
		}
		every = every && verified
	}
	if every {
		report.Verified, report.By = true, ByInstances
		return report, nil
	}
	return report, err
}

// budget is what may still be read for an image with all that is in its index.
type budget struct {
	content   int64 // bytes of payloads, envelopes and bundles
	manifests int64 // bytes of the manifests of referrers
	referrers int   // referrers that are listed
}

func newBudget() *budget {
	return &budget{content: maxTotal, manifests: maxTotal, referrers: reflist.MaxReferrers}
}

// list lists the referrers of a subject.
func (b *budget) list(ctx context.Context, r store.Reader,
	subject digest.Digest) ([]referrers.Referrer, []*referrers.Problem, error) {
	// Limits of zero are the defaults; then something more is listed, and is too much.
	listed, problems, err := referrers.List(ctx, r, subject, store.Limits{Count: max(b.referrers, 1),
		Manifests: max(b.manifests, 1)})
	if err != nil {
		return nil, nil, err
	}
	b.referrers -= len(listed) + len(problems)
	for _, one := range listed {
		b.manifests -= int64(len(one.Text))
	}
	if b.referrers < 0 || b.manifests < 0 {
		return nil, nil, fmt.Errorf("referrers of the image and of those in its index: %w: more than %d",
			fault.ErrLimit, reflist.MaxReferrers)
	}
	return listed, problems, nil
}

// verifier verifies what belongs to one subject.
type verifier struct {
	r        store.Reader
	o        VerifyOptions
	subject  digest.Digest
	left     *budget
	findings []Finding
}

// all looks in all places.
func (v *verifier) all(ctx context.Context) error {
	var errs []error
	if v.o.Type == PredicateSign {
		errs = append(errs, v.tag(ctx, formSig, simpleSigningType, maxSignature, v.simple))
	} else {
		errs = append(errs, v.tag(ctx, formAtt, envelopeMedia, maxAttestation, v.envelope))
	}
	return errors.Join(append(errs, v.bundles(ctx))...)
}

// tag verifies each layer of a tag that is derived from the subject's digest.
func (v *verifier) tag(ctx context.Context, in form, mediaType string, most int64,
	check func(f *Finding, l v1.Descriptor, content []byte) (Class, error)) error {
	text, _, err := v.r.Manifest(ctx, v.tagOf(in))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f := Finding{Form: string(in), Manifest: digest.FromBytes(text)}
	if err != nil {
		return v.unread(f, err)
	}
	layers, err := sigblob.Layers(text)
	if err != nil {
		v.refuse(f, classOf(err), err)
		return nil
	}
	for _, l := range layers {
		f := f
		f.Layer = l.Digest
		if l.MediaType != mediaType {
			v.refuse(f, MediaType, fmt.Errorf("the layer's type is %.100q, expected %q", l.MediaType, mediaType))
			continue
		}
		content, err := v.read(ctx, l, most)
		if err != nil {
			if err := v.unread(f, err); err != nil {
				return err
			}
			continue
		}
		if class, err := check(&f, l, content); err != nil {
			v.refuse(f, class, err)
			continue
		}
		f.Verified = true
		v.findings = append(v.findings, f)
	}
	return nil
}

// simple verifies a signature of a .sig tag: its bytes first, and then what they say.
func (v *verifier) simple(f *Finding, l v1.Descriptor, content []byte) (Class, error) {
	encoded, ok := l.Annotations[signatureAnnotation]
	if !ok {
		return Malformed, fmt.Errorf("%w: the layer has no annotation %s", fault.ErrInvalid, signatureAnnotation)
	}
	sig, err := decodeBase64(encoded)
	if err != nil {
		return Malformed, fmt.Errorf("annotation %s: %w", signatureAnnotation, err)
	}
	key, err := v.madeByKey(f, content, [][]byte{sig}, formSig)
	if err != nil {
		return OtherKey, err
	}
	if text, ok := l.Annotations[certificateAnnotation]; ok {
		der, err := pemCertificate(text)
		if err == nil {
			err = checkCertificate(der, key, v.o.Now)
		}
		if err != nil {
			return Certificate, err
		}
	}
	p, err := parseSimple(content)
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

// envelope verifies an attestation of an .att tag.
func (v *verifier) envelope(f *Finding, _ v1.Descriptor, content []byte) (Class, error) {
	e, err := parseEnvelope(content)
	if err != nil {
		return classOf(err), err
	}
	return v.statement(f, e, formAtt)
}

// bundle verifies a Sigstore bundle.
func (v *verifier) bundle(f *Finding, content []byte) (Class, error) {
	e, err := parseBundle(content)
	if err != nil {
		return classOf(err), err
	}
	return v.statement(f, e, formBundle)
}

// statement verifies the statement of an envelope: its bytes first, and then what they say.
func (v *verifier) statement(f *Finding, e *envelope, in form) (Class, error) {
	if e.payloadType != statementMedia {
		return PayloadType, fmt.Errorf("the payload's type is %.100q, expected %q", e.payloadType, statementMedia)
	}
	key, err := v.madeByKey(f, preAuthEncoding(e.payloadType, e.payload), e.signatures, in)
	if err != nil {
		return OtherKey, err
	}
	if e.certificate != nil {
		if err := checkCertificate(e.certificate, key, v.o.Now); err != nil {
			return Certificate, err
		}
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
func (v *verifier) madeByKey(f *Finding, message []byte, sigs [][]byte, in form) (PublicKey, error) {
	for _, key := range v.o.Keys {
		for _, sig := range sigs {
			if key.verify(message, sig, in) == nil {
				f.Key, f.KeyType = key.Fingerprint(), key.Describe()
				return key, nil
			}
		}
	}
	if len(v.o.Keys) == 1 {
		return PublicKey{}, errSignature
	}
	return PublicKey{}, errors.New("none of these keys made the signature")
}

// refuse adds a finding that is not verified.
func (v *verifier) refuse(f Finding, class Class, err error) {
	f.Verified, f.Class, f.Problem = false, class, err.Error()
	f.Identity, f.PredicateType, f.Predicate = "", "", nil
	v.findings = append(v.findings, f)
}

// unread adds a finding for content that is not what it should be. Other errors are returned: they do not say that
// there is no signature.
func (v *verifier) unread(f Finding, err error) error {
	switch {
	case errors.Is(err, fault.ErrLimit):
		v.refuse(f, TooLarge, err)
	case errors.Is(err, fault.ErrIntegrity), errors.Is(err, fault.ErrInvalid), errors.Is(err, fs.ErrNotExist):
		v.refuse(f, Corrupt, err)
	default:
		return fmt.Errorf("looking for signatures of %s: %w", v.subject, err)
	}
	return nil
}

// classOf returns the class of an error about the form of a signature.
func classOf(err error) Class {
	if errors.Is(err, fault.ErrLimit) {
		return TooLarge
	}
	return Malformed
}
