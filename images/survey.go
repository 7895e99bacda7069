package images

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
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

// maxVariants bounds the number of platforms, since each takes two requests.
const maxVariants = 64

// Survey reads the manifests and configurations of the image, or of the index and the indexes in it, and no layers.
// Closing the survey closes the source. Errors are those of [Client.Open].
func (s *Source) Survey(ctx context.Context) (_ *Survey, err error) {
	defer func() { err = s.opened.about(err) }()
	ctx, cancel := s.opened.withTimeout(ctx)
	defer cancel()
	out := &Survey{Name: s.Given, Source: s.OpenedAt, Repository: s.Repository, Digest: s.Digest,
		MediaType: s.Top.MediaType, Size: s.Top.Size, src: s}
	visit := func(ctx context.Context, n *store.Node) (err error) {
		entry := n.Descriptor
		entry.MediaType = n.Kind
		if n.Above == nil {
			entry.Digest = s.Digest // the one by which the image was asked for
		}
		if !manifest.MIMETypeIsMultiImage(n.Kind) {
			return out.add(ctx, s.opened.newImage(), n.Text, entry)
		}
		if n.Above == nil {
			var index v1.Index
			if err := json.Unmarshal(n.Text, &index); err != nil {
				return fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
			}
			out.Index, out.Annotations = true, index.Annotations
		}
		n.Entries = nil
		for _, d := range n.Parts.Manifests {
			if store.IsImage(d, len(n.Parts.Manifests)) {
				n.Entries = append(n.Entries, d)
			} else {
				out.Others = append(out.Others, d)
			}
		}
		return nil
	}
	// One image may be for several platforms.
	o := store.WalkOptions{Repeats: true, Read: s.readEntry, Visit: visit}
	if err := store.Walk(ctx, store.Node{Descriptor: s.Top, Text: s.opened.text}, o); err != nil {
		return nil, err
	}
	if len(out.Images) == 0 {
		return nil, fmt.Errorf("%w: there is no image in the index", fault.ErrInvalid)
	}
	return out, nil
}

// readEntry reads the manifest of an entry of an index.
func (s *Source) readEntry(ctx context.Context, n *store.Node) (err error) {
	if n.Text, n.Kind, err = s.Manifest(ctx, n.Digest.String()); err != nil {
		return ofManifest(err)
	}
	if err := checkManifest(n.Text, n.Descriptor); err != nil {
		return err
	}
	n.Kind, err = verify.ManifestKind(n.Text, n.Kind)
	return err
}

// add reads the configuration of an image and adds it.
func (s *Survey) add(ctx context.Context, one *Image, text []byte, entry v1.Descriptor) error {
	if len(s.Images) == 2*maxVariants {
		return fmt.Errorf("index: %w: more than %d images", fault.ErrLimit, 2*maxVariants)
	}
	one.Digest, one.MediaType = entry.Digest, entry.MediaType
	if err := one.readManifest(ctx, text); err != nil {
		if s.Index {
			err = fmt.Errorf("image %s: %w", entry.Digest, err)
		}
		return err
	}
	i := SurveyedImage{Image: one, Entry: entry, Platform: one.Config.Platform}
	if entry.Platform != nil {
		i.Platform = *entry.Platform
	}
	s.Images = append(s.Images, i)
	return nil
}
