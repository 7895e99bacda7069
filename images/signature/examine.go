package signature

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
)

// Claim is what a signature or an attestation says of itself. It is a fact only if it is Verified.
type Claim struct {
	Form string `json:"form"`
	// Manifest is the manifest that it is in.
	Manifest digest.Digest `json:"manifest"`
	Verified bool          `json:"verified"`
	// Key is the fingerprint of the key: of the one that verifies it, else of the one that a bundle names.
	Key string `json:"key,omitempty"`
	// Identity is the name of the image in a .sig signature.
	Identity string `json:"identity,omitempty"`
	// CertificateIdentity is who made it, of a claim that an identity verifies; of one that is not verified only the name in
	// its certificate.
	CertificateIdentity
	// PredicateType is that of the statement.
	PredicateType string `json:"predicateType,omitempty"`
}

// Examine returns what the signatures and attestations of one manifest or index say, of every type, and which of them
// the keys and identities verify; without any none is verified. What cannot be understood or is about another image is
// left out. Errors are those of [VerifyOptions.Verify].
func (o VerifyOptions) Examine(ctx context.Context, r store.Reader, subject digest.Digest) ([]Claim, error) {
	v := newFinder(r, subject, "", o.Keys...)
	v.o.Identities = o.Identities
	var claims []Claim
	for _, in := range []form{formSig, formAtt, formBundle} {
		err := v.present(ctx, in, func(d document) {
			claim := v.claim
			if in == formSig {
				claim = v.simpleClaim
			}
			if c, ok := claim(d); ok {
				claims = append(claims, c)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// simpleClaim returns what a signature of a .sig tag says; false if it cannot be understood or is about another image.
func (v *verifier) simpleClaim(d document) (Claim, bool) {
	p, err := parseSimple(d.content)
	if err != nil || p.Digest != v.subject {
		return Claim{}, false
	}
	c := Claim{Form: string(d.in), Manifest: d.manifest, Identity: p.Identity}
	certificate, _ := d.pemCertificate() // one that cannot be read is reported by a verification
	c.Name = certifiedName(certificate)
	f := finding{}
	if _, err := v.simple(&f, d); err == nil {
		c.verified(f)
	}
	return c, true
}

// claim is like simpleClaim, for a statement in an envelope.
func (v *verifier) claim(d document) (Claim, bool) {
	e, err := d.envelope()
	if err != nil {
		return Claim{}, false
	}
	s, err := parseStatement(e.payload)
	if err != nil || e.payloadType != statementMedia || !slices.Contains(s.Subjects, v.subject) {
		return Claim{}, false
	}
	c := Claim{Form: string(d.in), Manifest: d.manifest, PredicateType: s.PredicateType, Key: e.key()}
	c.Name = certifiedName(e.certificate)
	f := finding{}
	if _, err := v.made(&f, d, e.signed()); err == nil {
		c.verified(f)
	}
	return c, true
}

func (c *Claim) verified(f finding) {
	c.Verified, c.Key, c.CertificateIdentity = true, f.Key, f.CertificateIdentity
}

// key returns the fingerprint of the key that a bundle names; empty if its hint is not the SHA-256 that cosign writes.
func (e *envelope) key() string {
	sum, err := base64.StdEncoding.DecodeString(e.hint)
	if err != nil || len(sum) != 32 {
		return ""
	}
	return "sha256:" + hex.EncodeToString(sum)
}
