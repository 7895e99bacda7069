package signature

import (
	"encoding/json"
	"slices"
)

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
	top := parseObject(text, "mediaType|media_type", "verificationMaterial|verification_material",
		"dsseEnvelope|dsse_envelope", "messageSignature|message_signature")
	if kind := top.text("mediaType"); !slices.Contains(bundleTypes, kind) {
		top.invalid("a bundle of the type %.100q", kind)
	}
	if top.has("messageSignature") {
		top.invalid("the bundle signs a blob and no image")
	}
	if !top.has("dsseEnvelope") {
		top.invalid("the bundle has no envelope")
	}
	e, err := parseEnvelope(top.members["dsseEnvelope"])
	top.fail(err)
	if len(e.signatures) != 1 {
		top.invalid("the bundle has %d signatures, exactly one is allowed", len(e.signatures))
	}
	if top.has("verificationMaterial") {
		e.readMaterial(top.object("verificationMaterial", "publicKey|public_key", "certificate",
			"x509CertificateChain|x509_certificate_chain"))
	}
	return e, *top.err
}

// maxChain bounds the certificates of a chain.
const maxChain = 16

// readMaterial reads the certificate of a bundle, or the name of its key.
func (e *envelope) readMaterial(material object) {
	var found []string
	for _, name := range []string{"publicKey", "certificate", "x509CertificateChain"} {
		if material.has(name) {
			found = append(found, name)
		}
	}
	if len(found) > 1 {
		material.invalid("both %q and %q", found[0], found[1])
	}
	if len(found) != 1 {
		return
	}
	in := material
	leaf := material.members["certificate"]
	switch found[0] {
	case "publicKey":
		e.hint = material.object("publicKey", "hint").text("hint")
		return
	case "x509CertificateChain":
		in = material.object("x509CertificateChain", "certificates")
		chain := in.list("certificates", maxChain)
		if len(chain) == 0 {
			return
		}
		leaf = chain[0]
	}
	e.certificate = in.parse("certificate: ", leaf, "rawBytes|raw_bytes").bytes("rawBytes")
}
