package verify

import (
	"errors"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// A manifest that two programs understand in two ways is refused.
func TestAmbiguousManifests(t *testing.T) {
	for text, good := range map[string]bool{
		`{"schemaVersion":2,"manifests":[{"digest":"x","annotations":{"a":"1","A":"2","Digest":"y"}}]}`:    true,
		`{"schemaVersion":2,"manifests":[{"digest":"x","platform":{"os.features":[]}}],"more":{"a":[[]]}}`: true,
		`{"schemaVersion":2,"manifests":[],"Manifests":[]}`:                                                false,
		`{"schemaVersion":2,"manifests":[],"manifests":[]}`:                                                false,
		`{"schemaVersion":2,"manifests":[],"mani\u0066ests":[]}`:                                           false,
		`{"schemaVersion":2,"Manifests":[]}`:                                                               false,
		`{"schemaVersion":2,"manifests":[{"digest":"x","Digest":"y"}]}`:                                    false,
		`{"schemaVersion":2,"manifests":[{"digest":"x","digest":"y"}]}`:                                    false,
		`{"schemaVersion":2,"manifests":[{"platform":{"os":"linux","OS":"other"}}]}`:                       false,
		`{"schemaVersion":2,"manifeſts":[],"manifests":[]}`:                                                false,
		`{"schemaVersion":2,"manifests":[{"annotations":{"a":"1","a":"2"}}]}`:                              false,
	} {
		_, err := ManifestKind([]byte(text), v1.MediaTypeImageIndex)
		if good && err != nil || !good && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
