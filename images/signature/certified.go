package signature

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Certified is a [Signer] with a key that is made for its signatures, and that an authority certifies for an identity.
// Each signature comes with the certificate and with what proves when it was made. No signature is found again later,
// as no later run has the key.
type Certified interface {
	Signer
	// Bundle signs an in-toto statement and returns the text of a Sigstore bundle v0.3.
	Bundle(ctx context.Context, statement []byte) ([]byte, error)
	// Annotations signs the payload of a layer of a .sig tag and returns the layer's annotations, as cosign has them.
	Annotations(ctx context.Context, payload []byte) (map[string]string, error)
	// Identity is the identity in the certificate of the last signature.
	Identity() CertificateIdentity
	// Verifier verifies what was signed, before it is published.
	Verifier() Identities
}

// CertificateIdentity is who a certificate was issued to: an e-mail address, or a URI of a workflow or an account, and
// the URL of the OpenID Connect issuer that says so.
type CertificateIdentity struct {
	Name   string `json:"certificateIdentity,omitempty"`
	Issuer string `json:"certificateOidcIssuer,omitempty"`
}

// CertifiedBy is what is known of a verified signature with a certificate.
type CertifiedBy struct {
	CertificateIdentity
	// Key is that of the certificate.
	Key PublicKey
	// Time is a proven time at which the certificate was valid.
	Time time.Time
	// Payload is what was signed: the statement of a bundle, or the content of a layer.
	Payload []byte
}

// Identities verifies signatures by identities that are trusted. Package keyless implements it. It is safe for concurrent
// use. The class says why a signature is refused.
type Identities interface {
	// Bundle verifies a Sigstore bundle with an envelope.
	Bundle(text []byte) (CertifiedBy, Class, error)
	// Layer verifies a layer of a .sig tag, or of an .att tag if it has an envelope.
	Layer(content []byte, envelope bool, annotations map[string]string) (CertifiedBy, Class, error)
}

// The annotations of a layer with a signature, as cosign writes them.
const (
	// SignatureAnnotation has the signature in base64; it is empty beside an envelope.
	SignatureAnnotation = "dev.cosignproject.cosign/signature"
	// CertificateAnnotation has the certificate in PEM.
	CertificateAnnotation = "dev.sigstore.cosign/certificate"
)

// annotate signs the payload of a layer of a .sig tag and returns the layer's annotations.
func annotate(ctx context.Context, key Signer, payload []byte) (map[string]string, error) {
	if c, ok := key.(Certified); ok {
		return c.Annotations(ctx, payload)
	}
	sig, err := key.Sign(ctx, payload)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return map[string]string{SignatureAnnotation: base64.StdEncoding.EncodeToString(sig)}, nil
}

// signBundle signs a statement and returns the text of a bundle.
func signBundle(ctx context.Context, key Signer, statement []byte) ([]byte, error) {
	if c, ok := key.(Certified); ok {
		return c.Bundle(ctx, statement)
	}
	envelope, err := signEnvelope(ctx, key, statement)
	if err != nil {
		return nil, err
	}
	return encodeBundle(key.Public(), envelope)
}

// by adds the key, and the identity of a certificate, to what was made.
func (m *Made) by(key Signer) {
	m.Key = key.Public().Fingerprint()
	if c, ok := key.(Certified); ok {
		m.CertificateIdentity = c.Identity()
	}
}

// signed is what a document says that was signed, before it is verified.
type signed struct {
	// message is what the signatures are of: the payload, or an encoding of it.
	message, payload []byte
	signatures       [][]byte
	// certificate is in DER; nil if there is none.
	certificate []byte
}

// made verifies that a trusted identity or key made one of the signatures.
func (v *verifier) made(f *finding, d document, s signed) (class Class, err error) {
	switch {
	case v.o.Identities == nil:
	case s.certificate != nil:
		if class, err = v.byIdentity(f, d, s.payload); err == nil || len(v.o.Keys) == 0 {
			return class, err
		}
	case len(v.o.Keys) == 0:
		return OtherSigner, errors.New("it was made by a key, without a certificate of an identity")
	}
	key, other := v.madeByKey(f, s.message, s.signatures, d.in)
	switch {
	case other != nil && err != nil:
		return class, err
	case other != nil:
		if name := certifiedName(s.certificate); name != "" {
			other = fmt.Errorf("%w: its certificate says that %.300q did", other, name)
		}
		return OtherKey, other
	case s.certificate != nil:
		if err := checkCertificate(s.certificate, key, v.o.Now); err != nil {
			return Certificate, err
		}
	}
	return "", nil
}

// byIdentity verifies a document by its certificate.
func (v *verifier) byIdentity(f *finding, d document, payload []byte) (class Class, err error) {
	var by CertifiedBy
	if d.in == formBundle {
		by, class, err = v.o.Identities.Bundle(d.content)
	} else {
		by, class, err = v.o.Identities.Layer(d.content, d.in == formAtt, d.layer.Annotations)
	}
	if err == nil && !bytes.Equal(by.Payload, payload) {
		class, err = Malformed, fmt.Errorf("%w: there are two ways to read it", fault.ErrInvalid)
	}
	if err == nil {
		f.CertificateIdentity, f.Time = by.CertificateIdentity, by.Time.UTC().Format(time.RFC3339)
		f.Key, f.KeyType = by.Key.Fingerprint(), by.Key.Describe()
	}
	return class, err
}
