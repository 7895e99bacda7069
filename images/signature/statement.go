package signature

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The names of in-toto statements.
const (
	statementType    = "https://in-toto.io/Statement/v1"
	oldStatementType = "https://in-toto.io/Statement/v0.1"
	statementMedia   = "application/vnd.in-toto+json"
)

// The types of predicates that have short names, as cosign writes them, and the type of the documents they come in.
const (
	PredicateSign       = "https://sigstore.dev/cosign/sign/v1" // a signature: no other type counts as one
	PredicateSPDX       = "https://spdx.dev/Document"
	PredicateCycloneDX  = "https://cyclonedx.org/bom"
	PredicateProvenance = "https://slsa.dev/provenance/v1"
	// BundleType is the media type of a Sigstore bundle v0.3, and the artifact type of referrers with one.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

// predicateNames are the short names of predicate types.
var predicateNames = map[string]string{
	"spdx":             PredicateSPDX,
	"spdxjson":         PredicateSPDX,
	"cyclonedx":        PredicateCycloneDX,
	"slsaprovenance":   "https://slsa.dev/provenance/v0.2",
	"slsaprovenance02": "https://slsa.dev/provenance/v0.2",
	"slsaprovenance1":  PredicateProvenance,
	"custom":           "https://cosign.sigstore.dev/attestation/v1",
	"vuln":             "https://cosign.sigstore.dev/attestation/vuln/v1",
	"openvex":          "https://openvex.dev/ns",
	"link":             "https://in-toto.io/Link/v1",
}

// predicateURI is a scheme and anything that is visible (RFC 3986, section 3.1).
var predicateURI = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$`)

// ParsePredicateType returns the URI of a predicate type, which may be given by its short name.
func ParsePredicateType(text string) (string, error) {
	if uri, ok := predicateNames[text]; ok {
		return uri, nil
	}
	if !predicateURI.MatchString(text) {
		return "", fmt.Errorf("%w: predicate type %.100q is neither a URI nor one of spdxjson, cyclonedx, "+
			"slsaprovenance, slsaprovenance1, custom, vuln, openvex, link", fault.ErrInvalid, text)
	}
	return text, nil
}

// The limits of statements, as sigstore-go has them.
const (
	maxSubjects       = 1024
	maxSubjectDigests = 32
)

// statement is an in-toto statement.
type statement struct {
	PredicateType string
	// Subjects are the sha256 digests of the subjects that have one.
	Subjects  []digest.Digest
	Predicate jsontext.Value
}

// newStatement returns the text of a statement about one image.
func newStatement(subject digest.Digest, predicateType string, predicate json.RawMessage) ([]byte, error) {
	type resource struct {
		Digest map[string]string `json:"digest"`
	}
	return json.Marshal(struct {
		Type          string          `json:"_type"`
		Subject       []resource      `json:"subject"`
		PredicateType string          `json:"predicateType"`
		Predicate     json.RawMessage `json:"predicate"`
	}{statementType, []resource{{map[string]string{subject.Algorithm().String(): subject.Encoded()}}}, predicateType,
		predicate})
}

// parseStatement reads a statement of version 1 or 0.1.
func parseStatement(text []byte) (statement, error) {
	top := parseObject(text, "_type", "subject", "predicateType", "predicate")
	if kind := top.text("_type"); kind != statementType && kind != oldStatementType {
		top.invalid("a statement of the type %.100q", kind)
	}
	s := statement{PredicateType: top.text("predicateType"), Predicate: top.members["predicate"]}
	if s.PredicateType == "" {
		top.invalid("a statement without a predicateType")
	}
	subjects := top.list("subject", maxSubjects)
	if len(subjects) == 0 {
		top.invalid("a statement without a subject")
	}
	for n, raw := range subjects {
		subject := top.parse(fmt.Sprintf("subject[%d]: ", n), raw, "name", "digest")
		digests := subject.object("digest", "sha256")
		if len(digests.members) > maxSubjectDigests {
			digests.fail(fmt.Errorf("%w: %d digests (limit %d)", fault.ErrLimit, len(digests.members), maxSubjectDigests))
		}
		if hex := digests.text("sha256"); hex != "" {
			d := digest.NewDigestFromEncoded(digest.SHA256, hex)
			if err := d.Validate(); err != nil {
				subject.invalid("digest: %v", err)
			}
			s.Subjects = append(s.Subjects, d)
		}
	}
	return s, *top.err
}
