package images

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Description describes one image, or an index and its images.
type Description struct {
	// Name is the name that the image was opened by.
	Name string
	// Top is the digest of the index or manifest that the name refers to.
	Top digest.Digest
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

// maxVariants bounds the number of platforms, since each takes two requests.
const maxVariants = 64

// Describe returns the platforms of the image, and the configuration for each. No layer is read. Entries of an index
// that are no images (attestations, signatures) are left out. Of several images for one platform the first one counts,
// as in [Source.Image]. Errors are those of [Client.Open].
func (s *Source) Describe(ctx context.Context) (_ *Description, err error) {
	defer func() { err = s.about(err) }()
	ctx, cancel := s.within(ctx)
	defer cancel()
	d := &describer{out: &Description{Name: s.Given, Top: s.Digest}, seen: map[string]bool{}}
	v := visitor{image: d.addImage,
		index: func(index v1.Index) { d.out.Index, d.out.Annotations = true, index.Annotations }}
	if err := s.walk(ctx, v); err != nil {
		return nil, err
	}
	if len(d.out.Variants) == 0 {
		return nil, fmt.Errorf("%w: there is no image in the index", fault.ErrInvalid)
	}
	return d.out, nil
}

// Describe is [Source.Describe] for the image of a name.
func (c *Client) Describe(ctx context.Context, name string) (_ *Description, err error) {
	s, err := c.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Describe(ctx)
}

// describer makes a [Description].
type describer struct {
	out  *Description
	seen map[string]bool
}

func (d *describer) addImage(ctx context.Context, one *Image, text []byte, entry v1.Descriptor) error {
	v := Variant{Digest: one.Digest}
	if err := one.readManifest(ctx, text); err != nil {
		return err
	}
	v.Config, v.Annotations = one.Config, one.Annotations
	if v.Platform = one.Config.Platform; entry.Platform != nil {
		v.Platform = *entry.Platform
	}
	// Older builders leave the fields of single images empty.
	if v.Platform.OS == "" {
		v.Platform.OS = "linux"
	}
	if v.Platform.Architecture == "" {
		v.Platform.Architecture = "amd64"
	}
	key := v.Platform.OS + "/" + v.Platform.Architecture + "/" + v.Platform.Variant
	if d.seen[key] {
		return nil
	}
	d.seen[key] = true
	if len(d.out.Variants) == maxVariants {
		return fmt.Errorf("index: %w: images for more than %d platforms", fault.ErrLimit, maxVariants)
	}
	d.out.Variants = append(d.out.Variants, v)
	return nil
}
