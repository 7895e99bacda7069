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
	// PredicateType is that of the statement.
	PredicateType string `json:"predicateType,omitempty"`
}

// Examine returns what the signatures and attestations of one manifest or index say, of every type, and which of them
// one of the keys verifies; without keys none is verified. What cannot be understood or is about another image is left
// out. Errors are those of [Verify].
func Examine(ctx context.Context, r store.Reader, subject digest.Digest, keys []PublicKey) ([]Claim, error) {
	v := newFinder(r, subject, "", keys...)
	var claims []Claim
	err := v.present(ctx, formSig, simpleSigningType, maxSignature, func(l presentLayer) {
		p, err := parseSimple(l.content)
		if err != nil || p.Digest != subject {
			return
		}
		c := Claim{Form: string(formSig), Manifest: l.manifest, Identity: p.Identity}
		if key, _, err := l.verified(subject, keys...); err == nil {
			c.Verified, c.Key = true, key
		}
		claims = append(claims, c)
	})
	if err != nil {
		return nil, err
	}
	err = v.present(ctx, formAtt, envelopeMedia, maxAttestation, func(l presentLayer) {
		if e, err := parseEnvelope(l.content); err == nil {
			claims = v.claim(claims, formAtt, l.manifest, e)
		}
	})
	if err != nil {
		return nil, err
	}
	listed, _, err := v.left.list(ctx, r, subject)
	if err != nil {
		return nil, err
	}
	for _, one := range listed {
		if len(one.Layers) != 1 || !isBundle(one.Layers[0]) {
			continue
		}
		content, err := v.read(ctx, one.Layers[0], maxAttestation)
		if err != nil {
			if err := v.unread(Finding{}, err); err != nil {
				return nil, err
			}
			continue
		}
		if e, err := parseBundle(content); err == nil {
			claims = v.claim(claims, formBundle, one.Digest, e)
		}
	}
	return claims, nil
}

// claim adds what an envelope says.
func (v *verifier) claim(claims []Claim, in form, manifest digest.Digest, e *envelope) []Claim {
	s, err := parseStatement(e.payload)
	if err != nil || e.payloadType != statementMedia || !slices.Contains(s.Subjects, v.subject) {
		return claims
	}
	c := Claim{Form: string(in), Manifest: manifest, PredicateType: s.PredicateType, Key: e.key()}
	key, err := v.madeByKey(&Finding{}, preAuthEncoding(e.payloadType, e.payload), e.signatures, in)
	if err == nil && e.certificate != nil {
		err = checkCertificate(e.certificate, key, v.o.Now)
	}
	if err == nil {
		c.Verified, c.Key = true, key.Fingerprint()
	}
	return append(claims, c)
}

// key returns the fingerprint of the key that a bundle names, if it names it as cosign does.
func (e *envelope) key() string {
	sum, err := base64.StdEncoding.DecodeString(e.hint)
	if err != nil || len(sum) != 32 {
		return ""
	}
	return "sha256:" + hex.EncodeToString(sum)
}
