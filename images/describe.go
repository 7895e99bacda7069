package images

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// Describe returns the platforms of an image, and the configuration for each. No layer is read. Entries of an index
// that are no images (attestations, signatures) are left out. Of several images for one platform the first one counts,
// as in [Client.Open]. Errors are those of Open.
func (c *Client) Describe(ctx context.Context, name string) (_ *Description, err error) {
	defer func() { err = pullError(name, err) }()
	var deadline time.Time
	if c.o.Timeout > 0 {
		deadline = time.Now().Add(c.o.Timeout)
	}
	ctx, cancel := withDeadline(ctx, deadline, c.o.Timeout)
	defer cancel()
	n, src, err := c.openSource(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	i := &Image{Name: name, src: src, cache: c.cacheFor(n), noted: c.oddLayers(name)}
	d := &describer{out: &Description{Name: name}, seen: map[string]bool{}}
	want, known := expectedDescriptor(src)
	text, kind, err := i.manifest(ctx, nil)
	if err != nil {
		return nil, err
	}
	if known {
		if err := i.checkManifest(text, want); err != nil {
			return nil, err
		}
	}
	i.Digest = identityOf(src, text)
	d.out.Top = i.Digest
	if err := c.record(name, i.Digest); err != nil {
		return nil, err
	}
	admission, err := c.admission(n, name, src)
	if err != nil {
		return nil, err
	}
	w := indexWalk{img: i, admission: admission, image: d.addImage,
		index: func(index v1.Index) { d.out.Index, d.out.Annotations = true, index.Annotations }}
	if err := w.add(ctx, i, text, kind, v1.Descriptor{}, verdict{}, 0); err != nil {
		return nil, err
	}
	if len(d.out.Variants) == 0 {
		return nil, fmt.Errorf("%w: there is no image in the index", fault.ErrInvalid)
	}
	return d.out, nil
}

// describer makes a [Description].
type describer struct {
	out  *Description
	seen map[string]bool
}

// isImage tells whether an entry of an index is an image to run, and no attestation or signature.
func isImage(entry v1.Descriptor, entries int) bool {
	if entry.ArtifactType != "" {
		return false
	}
	if entry.Platform == nil {
		return entries == 1
	}
	return entry.Platform.OS != "unknown" && entry.Platform.Architecture != "unknown"
}

func (d *describer) addImage(ctx context.Context, one *Image, text []byte, _ string, entry v1.Descriptor) error {
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
