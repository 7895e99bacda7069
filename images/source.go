package images

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Source is an image, or an index with its images, that the policy has accepted, and the place where it is, for what is
// attached to it. Only [candidate.accept] makes one: what an open name gives before the policy has answered has no digest
// and no bytes, and cannot be copied. The policy is not asked about attachments. It is safe for concurrent use. Close it
// after use.
type Source struct {
	store.Reader
	// Given is the name that it was opened by, as it was given; empty if it was opened by its place.
	Given string
	// Top is the descriptor of the index or manifest.
	Top v1.Descriptor
	// Digest is the digest that the name stands for: that of Top, but for an image of a store.
	Digest digest.Digest
	// OpenedAt is the reference in the registry or the mirror that was read; empty in other places.
	OpenedAt string
	// Repository is the repository that the image is named by, HOST/NAME without tag and digest; empty if the name has
	// none, as that of a layout.
	Repository string

	opened  *candidate
	texts   map[digest.Digest]*store.Node // what was read to be judged
	covered sync.Map                      // the digests in accepted indexes that are in it
	nested  sync.Once
	// nestedErr and entries are what nested has found.
	nestedErr error
	entries   map[digest.Digest]bool
}

// checkManifest compares a manifest with its descriptor.
func checkManifest(text []byte, want v1.Descriptor) error {
	if err := verify.ManifestSize(int64(len(text))); err != nil {
		return err
	}
	if err := verify.Manifest(text, want.Digest); err != nil {
		return err
	}
	if int64(len(text)) != want.Size {
		return fmt.Errorf("manifest: %w: size is %d and not %d", fault.ErrIntegrity, len(text), want.Size)
	}
	return nil
}

// closePlace ends the use of a place.
func closePlace(p *transport.Place) error {
	if p.Close == nil {
		return nil
	}
	return p.Close()
}

// ofManifest says of an error that it is about a manifest, unless it says so itself.
func ofManifest(err error) error {
	if strings.HasPrefix(err.Error(), "manifest: ") {
		return err
	}
	return fmt.Errorf("manifest: %w", err)
}

// Close closes the place, unless it was open before.
func (s *Source) Close() error { return closePlace(s.opened.place) }

// InRegistry tells whether the image is in a registry, so that others can pull it by its name.
func (s *Source) InRegistry() bool { return s.opened.inRegistry() }

// Named returns the reference of the image in a registry as it was given, with the tag "latest" if it had none; empty
// if the name is none.
func (s *Source) Named() string { return s.opened.named() }

// Can tells what the place can do. An image in a registry is named as one that has its blobs, so that they are mounted
// from there.
func (s *Source) Can() store.Abilities {
	can := s.Reader.Can()
	if can.Repositories == nil && s.InRegistry() {
		can.Repositories = func(digest.Digest) []string { return []string{s.Repository} }
	}
	return can
}

// Entries describes the image: the entries of its index, and of indexes in it. Manifests that are no indexes are not
// read.
func (s *Source) Entries(ctx context.Context) (store.Image, error) {
	image, err := store.ReadImage(ctx, s, s.Top)
	image.Name = s.opened.place.Named
	return image, s.opened.about(err)
}

// Image opens the image for a platform; by default for that of the client's options, or for linux/amd64. An image that
// is not in an index is not compared with it. Closing the image closes the source. Errors are those of [Client.Open].
func (s *Source) Image(ctx context.Context, p v1.Platform) (*Image, error) {
	return s.opened.image(ctx, p)
}

// Choose is [Client.Choose] for an image that is open. Closing the image closes the source.
func (s *Source) Choose(ctx context.Context, choose Chooser) (*Image, error) {
	return s.opened.choose(ctx, choose)
}

// Manifest returns a manifest of the image that the policy accepts, or another one of the place.
func (s *Source) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	d, o := digest.Digest(name), s.opened
	if d == s.Top.Digest {
		return bytes.Clone(o.text), s.Top.MediaType, nil
	}
	if n := s.texts[d]; n != nil {
		return bytes.Clone(n.Text), n.Kind, nil
	}
	text, kind, err := s.Reader.Manifest(ctx, name)
	if err != nil || verify.Digest(d) != nil {
		return text, kind, redact.Error(err)
	}
	if err := verify.Manifest(text, d); err != nil {
		return nil, "", err
	}
	o.showManifest(text)
	if o.verdict.accepted {
		return text, kind, nil
	}
	if has, err := s.hasEntry(ctx, d); !has || err != nil {
		return text, kind, redact.Error(err)
	}
	if kind, err = s.admit(ctx, d, text, kind); err != nil {
		return nil, "", redact.Error(err)
	}
	return text, kind, nil
}

// admit asks the policy about an entry of an index that it does not accept as a whole.
func (s *Source) admit(ctx context.Context, d digest.Digest, text []byte, kind string) (string, error) {
	kind, err := verify.ManifestKind(text, kind)
	if err != nil {
		return "", err
	}
	above := s.opened.verdict
	_, above.accepted = s.covered.Load(d)
	admitted, err := s.opened.admission.admit(ctx, above, text, kind)
	if err != nil || !admitted.accepted || !manifest.MIMETypeIsMultiImage(kind) {
		return kind, err
	}
	var index v1.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return "", fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
	}
	for _, d := range index.Manifests {
		s.covered.Store(d.Digest, true)
	}
	return kind, nil
}

// hasEntry tells whether the index of the image, or an index in it, has a manifest.
func (s *Source) hasEntry(ctx context.Context, d digest.Digest) (bool, error) {
	s.nested.Do(func() {
		var image store.Image
		image, s.nestedErr = store.ReadImage(ctx, s.Reader, s.Top)
		s.entries = map[digest.Digest]bool{}
		for _, e := range image.Instances {
			s.entries[e.Digest] = true
		}
	})
	return s.entries[d], s.nestedErr
}
