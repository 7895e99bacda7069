package signature

import (
	"bytes"
	"testing"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
)

// FuzzParse parses texts of signatures of every kind. What is accepted names one image in one way.
func FuzzParse(f *testing.F) {
	for vector, files := range supplytest.Vectors(f) {
		if vector == "keys" || vector == "policy" {
			continue
		}
		for _, content := range files {
			if bytes.HasPrefix(content, []byte("{")) && len(content) < 4<<10 {
				f.Add(content)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := parseSimple(text); err == nil && (p.Digest.Validate() != nil ||
			bytes.Count(text, []byte(p.Digest)) < 1 && !bytes.Contains(text, []byte(`\u`))) {
			t.Errorf("the digest %q is not in %q", p.Digest, text)
		}
		if s, err := parseStatement(text); err == nil && (s.PredicateType == "" || len(s.Subjects) > maxSubjects) {
			t.Errorf("%+v of %q", s, text)
		}
		if e, err := parseBundle(text); err == nil {
			if len(e.signatures) != 1 {
				t.Errorf("%d signatures of %q", len(e.signatures), text)
			}
			if _, err := parseStatement(e.payload); err == nil && len(e.payload) == 0 {
				t.Errorf("a statement of nothing")
			}
		}
		if _, err := sigblob.Layers(text); err != nil && len(err.Error()) > 4<<10 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// FuzzKeys parses keys.
func FuzzKeys(f *testing.F) {
	for name, text := range supplytest.Vectors(f)["keys"] {
		if name != "README" {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if keys, err := ParsePublicKeys(text); err == nil && len(keys) == 0 {
			t.Error("no key and no error")
		}
		if !IsEncrypted(text) { // decrypting takes long
			if _, err := ParseKey(text, nil, false); err == nil {
				t.Error("a key that is not encrypted was accepted")
			}
		}
	})
}
