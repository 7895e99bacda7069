package build_test

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/layers"
)

// The limit on layers applies to images without a base too.
func TestAssembleCountsLayersWithoutABase(t *testing.T) {
	c := build.Custom{
		Platform: v1.Platform{OS: "linux", Architecture: "amd64"}, Layers: []*layers.Layer{{Name: "a"}, {Name: "b"}},
		Config: func([]digest.Digest, []v1.History) ([]byte, error) { return []byte("{}"), nil },
	}
	for most, want := range map[int]string{1: "the image would have 2 layers (limit 1)", 2: ""} {
		img, err := build.Assemble(t.Context(), []build.Custom{c}, build.Options{Dir: t.TempDir(), MaxLayers: most})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d: %v", most, err)
		}
		if err == nil {
			img.Close()
		}
	}
}
