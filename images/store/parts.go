package store

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Parts is what a manifest refers to.
type Parts struct {
	// Config and Layers are those of an image.
	Config *v1.Descriptor  `json:"config"`
	Layers []v1.Descriptor `json:"layers"`
	// Blobs are the configuration, the layers, and the blobs of a draft of the image specification.
	Blobs []v1.Descriptor `json:"blobs"`
	// Manifests are the entries of an index.
	Manifests []v1.Descriptor `json:"manifests"`
	// Subject is what the manifest refers to as its subject; nil for none.
	Subject *v1.Descriptor `json:"subject"`
}

// PartsOf reads what a manifest or index refers to. The digests are valid, no size is negative, and what is named twice
// has one size; errors are of the classes images.ErrInvalid and images.ErrLimit.
func PartsOf(text []byte) (*Parts, error) {
	p := &Parts{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	if p.Config != nil {
		p.Blobs = append(p.Blobs, *p.Config)
	}
	p.Blobs = append(p.Blobs, p.Layers...)
	if len(p.Manifests) > limit.MaxIndexEntries {
		return nil, fmt.Errorf("index: %w: %d entries (limit %d)", fault.ErrLimit, len(p.Manifests), limit.MaxIndexEntries)
	}
	if len(p.Blobs) > maxBlobs {
		return nil, fmt.Errorf("%w: %d layers and other blobs (limit %d)", fault.ErrLimit, len(p.Blobs), maxBlobs)
	}
	sizes := verify.Sizes{}
	for _, d := range slices.Concat(p.Blobs, p.Manifests) {
		if err := verify.Digest(d.Digest); err != nil {
			return nil, err
		}
		if _, err := sizes.Add(d); err != nil {
			return nil, err
		}
		if d.Size < 0 {
			return nil, fmt.Errorf("%w: %s has the size %d", fault.ErrInvalid, d.Digest, d.Size)
		}
		if d.Size > maxBlobSize {
			return nil, fmt.Errorf("%w: %s with %d bytes", fault.ErrLimit, d.Digest, d.Size)
		}
	}
	return p, nil
}

// Once returns the descriptors with different digests, in their order.
func Once(all []v1.Descriptor) (different []v1.Descriptor) {
	seen := map[digest.Digest]bool{}
	for _, d := range all {
		if !seen[d.Digest] {
			seen[d.Digest] = true
			different = append(different, d)
		}
	}
	return different
}

const (
	// maxBlobs is how many blobs an attachment may have: a configuration, and as many layers as a tag of signatures.
	maxBlobs = sigblob.MaxCount + 1
	// maxBlobSize is the size in bytes that a blob may say it has, so that sums of sizes are numbers.
	maxBlobSize = 1 << 50
)

// inOrder are the blobs in the order in which they are copied: layers before the configuration that names them.
func (p *Parts) inOrder() []v1.Descriptor {
	if p.Config == nil {
		return p.Blobs
	}
	return append(slices.Clone(p.Blobs[1:]), p.Blobs[0])
}

// Size is the size in bytes of all that is referred to.
func (p *Parts) Size() (sum int64) {
	for _, d := range slices.Concat(p.Blobs, p.Manifests) {
		sum += d.Size
	}
	return sum
}
