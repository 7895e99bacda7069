package signature_test

import (
	"encoding/json"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
)

// instancesOf returns the images of an index.
func instancesOf(t *testing.T, r store.Reader, top v1.Descriptor) []v1.Descriptor {
	t.Helper()
	text, _, err := r.Manifest(t.Context(), top.Digest.String())
	if err != nil {
		t.Fatal(err)
	}
	var index v1.Index
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	return index.Manifests
}
