package images

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Survey is an image, or an index with everything in it. Its images can be read until it is closed.
type Survey struct {
	// Name is the name that was opened, and Source the registry or mirror that was read, if it is not that of the name.
	Name, Source string
	// Repository is the repository that the image is named by, HOST/NAME without tag and digest; empty if the place has
	// no such names, as a layout.
	Repository string
	// Digest, MediaType and Size in bytes are those of the manifest or index.
	Digest    digest.Digest
	MediaType string
	Size      int64
	// Index tells whether it is an index; Annotations are those of the index.
	Index       bool
	Annotations map[string]string
	// Images are the images in the order of the index; never empty. Several may be for one platform.
	Images []SurveyedImage
	// Others are the entries of the index that are no images, such as attestations and signatures.
	Others []v1.Descriptor

	src interface{ Close() error }
}

// SurveyedImage is one image of a survey. Close the survey, not the image.
type SurveyedImage struct {
	*Image
	// Entry is the entry in the index. If there is no index, it has Digest, MediaType and Size.
	Entry v1.Descriptor
	// Platform is that of the index, else that of the configuration.
	Platform v1.Platform
}

// Close closes the source of the images.
func (s *Survey) Close() error { return s.src.Close() }

// Survey reads the manifests and configurations of an image or index, and no layers. Errors are those of [Client.Open].
func (c *Client) Survey(ctx context.Context, name string) (_ *Survey, err error) {
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
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	top := &Image{Name: name, src: src, cache: c.cacheFor(n), noted: c.oddLayers(name), deadline: deadline,
		timeout: c.o.Timeout}
	out := &Survey{Name: name, src: src, Repository: repositoryOf(src)}
	if r, ok := src.(*registry.Source); ok {
		out.Source, top.Source, top.repository = r.OpenedAt, r.OpenedAt, n.repository.Name()
		out.Repository = top.repository
	}
	if err := out.read(ctx, top, func(top digest.Digest) (*admission, error) {
		if err := c.record(name, top); err != nil {
			return nil, err
		}
		return c.admission(n, name, src)
	}); err != nil {
		return nil, err
	}
	return out, nil
}

// read reads the manifests and configurations. admit is called with the digest of the top before anything else is
// read, and returns what asks the signature policy; nil asks nothing.
func (s *Survey) read(ctx context.Context, top *Image, admit func(digest.Digest) (*admission, error)) error {
	want, known := expectedDescriptor(top.src)
	text, kind, err := top.manifest(ctx, nil)
	if err != nil {
		return err
	}
	if known {
		if err := top.checkManifest(text, want); err != nil {
			return err
		}
	}
	top.Digest = identityOf(top.src, text)
	top.Top = top.Digest
	admission, err := admit(top.Digest)
	if err != nil {
		return err
	}
	if s.MediaType, err = verify.ManifestKind(text, kind); err != nil {
		return err
	}
	s.Digest, s.Size = top.Digest, int64(len(text))
	r := surveyor{s}
	w := indexWalk{
		img: top, admission: admission, image: r.addImage,
		index: func(index v1.Index) { s.Index, s.Annotations = true, index.Annotations },
		other: func(entry v1.Descriptor) { s.Others = append(s.Others, entry) },
	}
	entry := v1.Descriptor{MediaType: s.MediaType, Digest: s.Digest, Size: s.Size}
	if err := w.add(ctx, top, text, s.MediaType, entry, verdict{}, 0); err != nil {
		return err
	}
	if len(s.Images) == 0 {
		return fmt.Errorf("%w: there is no image in the index", fault.ErrInvalid)
	}
	return nil
}

// surveyor makes a [Survey].
type surveyor struct{ out *Survey }

func (s *surveyor) addImage(ctx context.Context, one *Image, text []byte, kind string, entry v1.Descriptor) error {
	if len(s.out.Images) == 2*maxVariants {
		return fmt.Errorf("index: %w: more than %d images", fault.ErrLimit, 2*maxVariants)
	}
	one.Digest, one.MediaType = entry.Digest, kind
	if err := one.readManifest(ctx, text); err != nil {
		return fmt.Errorf("image %s: %w", entry.Digest, err)
	}
	i := SurveyedImage{Image: one, Entry: entry, Platform: one.Config.Platform}
	if entry.Platform != nil {
		i.Platform = *entry.Platform
	}
	s.out.Images = append(s.out.Images, i)
	return nil
}
