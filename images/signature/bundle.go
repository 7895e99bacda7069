package signature

import (
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/internal/fault"
)

// BundleType is the media type of a Sigstore bundle v0.3, and the artifact type of referrers with one.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// bundleTypes are the versions of bundles that are read.
var bundleTypes = []string{BundleType, "application/vnd.dev.sigstore.bundle+json;version=0.3",
	"application/vnd.dev.sigstore.bundle+json;version=0.2", "application/vnd.dev.sigstore.bundle+json;version=0.1"}

// encodeBundle returns the text of a bundle with an envelope. The text depends on the arguments alone.
func encodeBundle(key PublicKey, envelope []byte) ([]byte, error) {
	type hint struct {
		Hint string `json:"hint"`
	}
	type material struct {
		PublicKey hint `json:"publicKey"`
	}
	return json.Marshal(struct {
		MediaType string          `json:"mediaType"`
		Material  material        `json:"verificationMaterial"`
		Envelope  json.RawMessage `json:"dsseEnvelope"`
	}{BundleType, material{hint{key.Hint()}}, envelope})
}

// parseBundle reads the envelope of a bundle, which has exactly one signature. Of the rest only a certificate
// is used, to refuse one that cannot have signed. A bundle with a signature of a blob (messageSignature) is no
// signature of an image.
func parseBundle(text []byte) (*envelope, error) {
	top, err := parseObject(text, "mediaType", "media_type", "verificationMaterial", "verification_material",
		"dsseEnvelope", "dsse_envelope", "messageSignature", "message_signature")
	if err != nil {
		return nil, err
	}
	name, err := top.either("mediaType", "media_type")
	if err != nil {
		return nil, err
	}
	kind, err := top.text(name)
	if err != nil {
		return nil, err
	}
	known := false
	for _, t := range bundleTypes {
		known = known || t == kind
	}
	if !known {
		return nil, fmt.Errorf("%w: a bundle of the type %.100q", fault.ErrInvalid, kind)
	}
	material, err := top.either("verificationMaterial", "verification_material")
	if err != nil {
		return nil, err
	}
	for _, blob := range []string{"messageSignature", "message_signature"} {
		if _, ok := top[blob]; ok {
			return nil, fmt.Errorf("%w: the bundle signs a blob and no image", fault.ErrInvalid)
		}
	}
	if name, err = top.either("dsseEnvelope", "dsse_envelope"); err != nil {
		return nil, err
	}
	raw, ok := top[name]
	if !ok {
		return nil, fmt.Errorf("%w: the bundle has no envelope", fault.ErrInvalid)
	}
	e, err := parseEnvelope(raw)
	if err != nil {
		return nil, err
	}
	if len(e.signatures) != 1 {
		return nil, fmt.Errorf("%w: the bundle has %d signatures, exactly one is allowed", fault.ErrInvalid,
			len(e.signatures))
	}
	if _, ok := top[material]; ok {
		if err := e.readMaterial(top, material); err != nil {
			return nil, fmt.Errorf("%s: %w", material, err)
		}
	}
	return e, nil
}

// readMaterial reads the certificate of a bundle, or the name of its key.
func (e *envelope) readMaterial(top object, name string) error {
	material, err := top.object(name, "publicKey", "public_key", "certificate", "x509CertificateChain",
		"x509_certificate_chain")
	if err != nil {
		return err
	}
	var found []string
	for _, name := range []string{"publicKey", "public_key", "certificate", "x509CertificateChain",
		"x509_certificate_chain"} {
		if _, ok := material[name]; ok {
			found = append(found, name)
		}
	}
	switch {
	case len(found) > 1:
		return fmt.Errorf("%w: both %q and %q", fault.ErrInvalid, found[0], found[1])
	case len(found) == 0:
		return nil
	case found[0] == "publicKey" || found[0] == "public_key":
		key, err := material.object(found[0], "hint")
		if err != nil {
			return err
		}
		e.hint, err = key.text("hint")
		return err
	case found[0] == "certificate":
		e.certificate, err = rawBytes(material[found[0]])
		return err
	}
	chain, err := material.object(found[0], "certificates")
	if err != nil {
		return err
	}
	certificates, err := chain.list("certificates", maxChain)
	if err != nil || len(certificates) == 0 {
		return err
	}
	e.certificate, err = rawBytes(certificates[0])
	return err
}

// maxChain bounds the certificates of a chain.
const maxChain = 16

// rawBytes returns the bytes of a certificate.
func rawBytes(raw jsontext.Value) ([]byte, error) {
	certificate, err := parseObject(raw, "rawBytes", "raw_bytes")
	if err != nil {
		return nil, err
	}
	name, err := certificate.either("rawBytes", "raw_bytes")
	if err != nil {
		return nil, err
	}
	return certificate.bytes(name)
}
