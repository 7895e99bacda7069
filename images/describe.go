package images

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/platform"
)

// Description describes one image, or an index and its images.
type Description struct {
	// Name is the name that the image was opened by.
	Name string
	// Top is the digest of the index or manifest that the name refers to.
	Top digest.Digest
	// MediaType is that of the index or manifest.
	MediaType string
	// Index tells whether it is an index; Annotations are those of the index.
	Index       bool
	Annotations map[string]string
	// Variants are the images, in the order of the index; never empty.
	Variants []Variant
}

// Variant is the image of one platform.
type Variant struct {
	Platform v1.Platform
	Digest   digest.Digest
	Config   v1.Image
	// Annotations are those of the image's manifest.
	Annotations map[string]string
}

// Describe returns the platforms of the image, and the configuration for each. No layer is read. Entries of an index
// that are no images (attestations, signatures) are left out. Of several images for one platform the first one counts,
// as in [Source.Image]. Errors are those of [Client.Open].
func (s *Source) Describe(ctx context.Context) (*Description, error) {
	all, err := s.Survey(ctx)
	if err != nil {
		return nil, err
	}
	d := &Description{Name: s.Given, Top: s.Digest, MediaType: s.Top.MediaType, Index: all.Index, Annotations: all.Annotations}
	seen := map[string]bool{}
	for _, i := range all.Images {
		p := platform.Complete(i.Platform)
		key := platform.Name(p)
		if seen[key] {
			continue
		}
		seen[key] = true
		d.Variants = append(d.Variants, Variant{Platform: p, Digest: i.Digest, Config: i.Config,
			Annotations: i.Image.Annotations})
	}
	if len(d.Variants) > maxVariants {
		return nil, s.opened.about(fmt.Errorf("index: %w: images for more than %d platforms", fault.ErrLimit, maxVariants))
	}
	return d, nil
}

// Describe is like [Source.Describe], for the image of a name.
func (c *Client) Describe(ctx context.Context, name string) (_ *Description, err error) {
	s, err := c.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Describe(ctx)
}
