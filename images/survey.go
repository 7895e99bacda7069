package images

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
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

	src *Source
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

// Survey reads the manifests and configurations of the image or index, and no layers. Closing the
// survey closes the source. Errors are those of [Client.Open].
func (s *Source) Survey(ctx context.Context) (_ *Survey, err error) {
	defer func() { err = s.about(err) }()
	ctx, cancel := s.within(ctx)
	defer cancel()
	out := &Survey{Name: s.Given, Source: s.OpenedAt, Repository: s.Repository, Digest: s.Digest,
		MediaType: s.Top.MediaType, Size: s.Top.Size, src: s}
	r := surveyor{out}
	v := visitor{image: r.addImage,
		index: func(index v1.Index) { out.Index, out.Annotations = true, index.Annotations },
		other: func(entry v1.Descriptor) { out.Others = append(out.Others, entry) },
	}
	if err := s.walk(ctx, v); err != nil {
		return nil, err
	}
	if len(out.Images) == 0 {
		return nil, fmt.Errorf("%w: there is no image in the index", fault.ErrInvalid)
	}
	return out, nil
}

// surveyor makes a [Survey].
type surveyor struct{ out *Survey }

func (s *surveyor) addImage(ctx context.Context, one *Image, text []byte, entry v1.Descriptor) error {
	if len(s.out.Images) == 2*maxVariants {
		return fmt.Errorf("index: %w: more than %d images", fault.ErrLimit, 2*maxVariants)
	}
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
