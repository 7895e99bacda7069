package keyless

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Root is what is trusted: certificate authorities, transparency logs and timestamp authorities, each with its times.
type Root struct {
	material *root.TrustedRoot
}

// ParseRoot reads a trusted root (trusted_root.json).
func ParseRoot(text []byte) (*Root, error) {
	material, err := root.NewTrustedRootFromJSON(text)
	if err != nil {
		return nil, fmt.Errorf("%w: not a trusted root (trusted_root.json): %v", fault.ErrInvalid, err)
	}
	switch {
	case len(material.FulcioCertificateAuthorities()) == 0:
		return nil, fmt.Errorf("%w: trusted root: there is no certificate authority", fault.ErrInvalid)
	case len(material.RekorLogs()) == 0 && len(material.TimestampingAuthorities()) == 0:
		return nil, fmt.Errorf("%w: trusted root: there is neither a transparency log nor a timestamp authority: nothing "+
			"could prove when a signature was made", fault.ErrInvalid)
	}
	return &Root{material}, nil
}

// Identity is who is trusted: the name in a certificate and the issuer that vouches for it, each as a text or as a
// regular expression, which matches a part unless it begins with ^ and ends with $. Each has one of them, at least.
type Identity struct {
	Name, NameRegexp, Issuer, IssuerRegexp string
}

// Verifier verifies signatures by identities. It implements [signature.Identities]. It asks no service: a signature has
// all that is needed. It is safe for concurrent use.
type Verifier struct {
	root       *Root
	library    *verify.Verifier
	identities []verify.PolicyOption
	wanted     string // the identity in messages, if it is one
}

// NewVerifier returns a verifier of signatures by any of some identities. They need an entry in a log and a time if the
// root has logs, else a timestamp; and a certificate that is in a certificate log if the root has one.
func NewVerifier(r *Root, identities ...Identity) (*Verifier, error) {
	if len(identities) == 0 {
		return nil, fmt.Errorf("%w: there is no identity to verify with", fault.ErrInvalid)
	}
	var trusted []verify.PolicyOption
	for _, i := range identities {
		one, err := verify.NewShortCertificateIdentity(i.Issuer, i.IssuerRegexp, i.Name, i.NameRegexp)
		if err != nil {
			return nil, fmt.Errorf("%w: identity: %v", fault.ErrInvalid, err)
		}
		trusted = append(trusted, verify.WithCertificateIdentity(one))
	}
	needs := []verify.VerifierOption{verify.WithoutStatementPredicate()}
	if len(r.material.RekorLogs()) > 0 {
		needs = append(needs, verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1))
	} else {
		needs = append(needs, verify.WithSignedTimestamps(1))
	}
	if len(r.material.CTLogs()) > 0 {
		needs = append(needs, verify.WithSignedCertificateTimestamps(1))
	}
	library, err := verify.NewVerifier(r.material, needs...)
	v := &Verifier{root: r, library: library, identities: trusted}
	if i := identities[0]; len(identities) == 1 {
		v.wanted = fmt.Sprintf(", and not by %q of %q", cmp.Or(i.Name, i.NameRegexp), cmp.Or(i.Issuer, i.IssuerRegexp))
	}
	return v, err
}

// Bundle implements [signature.Identities].
func (v *Verifier) Bundle(text []byte) (by signature.CertifiedBy, class signature.Class, err error) {
	message := &protobundle.Bundle{}
	if err := protojson.Unmarshal(text, message); err != nil {
		return by, signature.Malformed, fmt.Errorf("%w: %v", fault.ErrInvalid, err)
	}
	b, err := newBundle(message)
	if err != nil {
		return by, classOf(err), err
	}
	// What the statement is about is checked by the caller, who reads the same bytes.
	return v.verify(b, verify.WithoutArtifactUnsafe(), b.GetDsseEnvelope().GetPayload())
}

// Layer implements [signature.Identities].
func (v *Verifier) Layer(content []byte, envelope bool, annotations map[string]string) (by signature.CertifiedBy,
	class signature.Class, err error) {
	message, err := layerBundle(content, envelope, annotations)
	if err != nil {
		return by, signature.Malformed, err
	}
	b, err := newBundle(message)
	switch {
	case err != nil:
		return by, classOf(err), err
	case envelope:
		return v.verify(b, verify.WithoutArtifactUnsafe(), b.GetDsseEnvelope().GetPayload())
	}
	return v.verify(b, verify.WithArtifact(bytes.NewReader(content)), content)
}

// classOf returns the class of an error of newBundle.
func classOf(err error) signature.Class {
	if errors.Is(err, fault.ErrLimit) {
		return signature.TooLarge
	}
	return signature.Malformed
}

// verify verifies a bundle in the order of the library, so that the class says what failed: the log, the time, and then
// the certificate, the signature and the identity.
func (v *Verifier) verify(b *bundle.Bundle, about verify.ArtifactPolicyOption, payload []byte) (by signature.CertifiedBy,
	class signature.Class, err error) {
	content, err := b.VerificationContent()
	if err != nil {
		return by, signature.Malformed, fmt.Errorf("%w: %v", fault.ErrInvalid, err)
	}
	leaf := content.Certificate()
	if leaf == nil {
		return by, signature.OtherSigner, errors.New("it was made by a key, without a certificate of an identity")
	}
	logged, err := v.library.VerifyTransparencyLogInclusion(b)
	if err != nil {
		class, err = v.unlogged(b, leaf, err)
		return by, class, err
	}
	times, err := v.library.VerifyObserverTimestamps(b, logged)
	if err != nil {
		lacks := "it has no timestamp"
		if stamps, err := b.Timestamps(); err == nil && len(stamps) > 0 {
			lacks = "its timestamp is not one of an authority of the trusted root about it"
		}
		return by, signature.Untimed, fmt.Errorf("nothing that is trusted proves when it was made, and its certificate was "+
			"valid until %s: %s", leaf.NotAfter.UTC().Format(time.RFC3339), lacks)
	}
	for _, t := range times {
		if err := validAt(leaf, t.Timestamp); err != nil {
			return by, signature.Certificate, err
		}
	}
	if by.CertificateIdentity, err = identityOf(leaf); err != nil {
		return by, signature.Certificate, err
	}
	if by.Key, err = signature.NewPublicKey(leaf.PublicKey); err != nil {
		return by, signature.Certificate, fmt.Errorf("certificate: %w", err)
	}
	result, err := v.library.Verify(b, verify.NewPolicy(about, v.identities...))
	var other *verify.ErrNoMatchingCertificateIdentity
	switch {
	case errors.As(err, &other):
		return by, signature.OtherSigner, fmt.Errorf("it was made by %.300q, for whom %.300q vouches%s", by.Name, by.Issuer, v.wanted)
	case err != nil && strings.HasPrefix(err.Error(), "failed to verify signature"):
		return by, signature.OtherKey, errors.New("the key of its certificate did not make the signature")
	case err != nil:
		return by, signature.Certificate, fmt.Errorf("its certificate is not one of the trusted root: %w", err)
	}
	by.Time, by.Payload = result.VerifiedTimestamps[0].Timestamp, payload
	return by, "", nil
}

// validAt returns an error for a time at which a certificate was not valid.
func validAt(leaf *x509.Certificate, t time.Time) error {
	if t.Before(leaf.NotBefore) || t.After(leaf.NotAfter) {
		return fmt.Errorf("it was made at %s, and its certificate was valid from %s to %s only",
			t.UTC().Format(time.RFC3339), leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// unlogged says why no entry of a log counts.
func (v *Verifier) unlogged(b *bundle.Bundle, leaf *x509.Certificate, err error) (signature.Class, error) {
	entries, _ := b.TlogEntries() // the error is that of the library
	known := false
	for _, e := range entries {
		_, in := v.root.material.RekorLogs()[hex.EncodeToString([]byte(e.LogKeyID()))]
		known = known || in
		if at := e.IntegratedTime(); in && !at.IsZero() && validAt(leaf, at) != nil {
			return signature.Certificate, validAt(leaf, at)
		}
	}
	switch {
	case len(entries) == 0:
		return signature.Unlogged, errors.New("it has no entry of a transparency log, which the trusted root asks for")
	case !known:
		return signature.Unlogged, errors.New("its entry is of a transparency log that is not in the trusted root")
	}
	return signature.Unlogged, fmt.Errorf("its entry in the transparency log is not about it: %w", err)
}
