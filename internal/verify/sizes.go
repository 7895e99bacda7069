package verify

import (
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Sizes has the sizes of the content that was read so far, by digest: different sizes for one digest are an error.
type Sizes map[digest.Digest]int64

// AddManifest notes a manifest and what it refers to. It ignores a text that is not JSON.
func (s Sizes) AddManifest(text []byte) error {
	var m struct {
		Config            *v1.Descriptor
		Layers, Manifests []v1.Descriptor
	}
	if json.Unmarshal(text, &m) != nil {
		return nil
	}
	all := append(m.Layers, m.Manifests...)
	if m.Config != nil {
		all = append(all, *m.Config)
	}
	for _, d := range append(all, v1.Descriptor{Digest: digest.FromBytes(text), Size: int64(len(text))}) {
		if _, err := s.Add(d); err != nil {
			return err
		}
	}
	return nil
}

// Add notes a descriptor, and tells whether its digest is met for the first time. One that was met with another size is
// an error of the class [fault.ErrInvalid].
func (s Sizes) Add(d v1.Descriptor) (first bool, err error) {
	size, known := s[d.Digest]
	if known && size != d.Size {
		return false, fmt.Errorf("%w: %s is named with two sizes, %d and %d bytes", fault.ErrInvalid, d.Digest, size,
			d.Size)
	}
	s[d.Digest] = d.Size
	return !known, nil
}
