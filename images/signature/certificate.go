package signature

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
)

// pemCertificate returns the certificate of a layer of a .sig or .att tag, in DER; nil if there is none.
func (d document) pemCertificate() ([]byte, error) {
	text, has := d.layer.Annotations[CertificateAnnotation]
	if !has {
		return nil, nil
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%w: annotation %s: not one certificate in PEM", fault.ErrInvalid, CertificateAnnotation)
	}
	return block.Bytes, nil
}

// certifiedName returns the name in a certificate that nothing verifies; empty if there is none.
func certifiedName(der []byte) string {
	leaf, err := x509.ParseCertificate(der)
	switch {
	case err != nil:
	case len(leaf.EmailAddresses) > 0:
		return leaf.EmailAddresses[0]
	case len(leaf.URIs) > 0:
		return leaf.URIs[0].String()
	}
	return ""
}

// checkCertificate checks a certificate that comes with a signature by a trusted key. The key decides, and not the
// certificate; but a signature that is said to be by a certificate that cannot have made it is refused: one that is not
// valid now, as there is no trusted time of the signature, that is no leaf for signing code, or that has another key.
func checkCertificate(der []byte, key PublicKey, now time.Time) error {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("%w: certificate: %v", fault.ErrInvalid, err)
	}
	switch {
	case now.Before(leaf.NotBefore), now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate is valid from %s to %s, and nothing proves that it signed then",
			leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	case leaf.IsCA:
		return fmt.Errorf("the certificate is that of an authority")
	case !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageCodeSigning):
		return fmt.Errorf("the certificate is not for signing code")
	}
	signer, err := NewPublicKey(leaf.PublicKey)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	if signer.spki != key.spki {
		return fmt.Errorf("the certificate has another key than the one that made the signature")
	}
	return nil
}
