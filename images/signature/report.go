package signature

import (
	"encoding/json"

	"github.com/opencontainers/go-digest"
)

// Class says why a signature or attestation was refused. The texts are stable.
type Class string

// The classes of refusals.
const (
	OtherKey       Class = "other-key"       // none of the keys made it
	OtherSubject   Class = "other-subject"   // it is about another image
	OtherIdentity  Class = "other-identity"  // the image was signed under another name
	OtherSigner    Class = "other-signer"    // its certificate is of another identity or issuer
	Unlogged       Class = "log"             // no entry of a trusted log is about it
	Untimed        Class = "time"            // nothing that is trusted proves when it was made
	NotASignature  Class = "not-a-signature" // an attestation where a signature is needed
	OtherPredicate Class = "other-predicate" // an attestation of another type than the wanted one
	PayloadType    Class = "payload-type"    // an envelope with something else than a statement
	Malformed      Class = "malformed"       // it breaks a rule of its format
	MediaType      Class = "media-type"      // a layer of another type
	Certificate    Class = "certificate"     // a certificate that cannot have made the signature
	Corrupt        Class = "corrupt"         // content that is not what its digest says, or that is missing
	TooLarge       Class = "too-large"       // more bytes or entries than are read
)

// finding is one signature or attestation that was found. Only if it is Verified, what it says is known to be signed.
type finding struct {
	// Form is where it was found: sig and att for the tags, bundle for a referrer.
	Form string `json:"form"`
	// Manifest and Layer are where its bytes are.
	Manifest digest.Digest `json:"manifest"`
	Layer    digest.Digest `json:"layer,omitempty"`
	Verified bool          `json:"verified"`
	// Key is the fingerprint of the key that made it, and KeyType the key's type.
	Key     string `json:"key,omitempty"`
	KeyType string `json:"keyType,omitempty"`
	// Identity is the signed name of the image; bundles have none.
	Identity string `json:"identity,omitempty"`
	// CertificateIdentity is who made it, of a signature by an identity, and Time when it was made at the latest.
	CertificateIdentity
	Time string `json:"time,omitempty"`
	// PredicateType and Predicate are those of a signed statement.
	PredicateType string          `json:"predicateType,omitempty"`
	Predicate     json.RawMessage `json:"predicate,omitempty"`
	// Class and Problem say why it was refused. Problem quotes text from outside.
	Class   Class  `json:"class,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// subjectReport is what was found for one manifest or index.
type subjectReport struct {
	Digest   digest.Digest `json:"digest"`
	Platform string        `json:"platform,omitempty"`
	Verified bool          `json:"verified"`
	Findings []finding     `json:"findings"`
}

// The values of [Report.By].
const (
	ByImage     = "image"     // the image that the name refers to
	ByList      = "list"      // the index, whose signature covers its images by their digests
	ByInstances = "instances" // every image of the index that was asked for
)

// Report is the result of [VerifyOptions.Verify].
type Report struct {
	Image digest.Digest `json:"image"`
	// Type is the type of predicate that was looked for.
	Type     string `json:"type"`
	Verified bool   `json:"verified"`
	// By says what was verified; empty if nothing was.
	By       string          `json:"by,omitempty"`
	Subjects []subjectReport `json:"subjects"`
}

// Refusals returns the findings that were refused.
func (r *Report) Refusals() (refused []finding) {
	for _, s := range r.Subjects {
		for _, f := range s.Findings {
			if !f.Verified {
				refused = append(refused, f)
			}
		}
	}
	return refused
}
