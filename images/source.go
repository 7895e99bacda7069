package images

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Source is an image, or an index with its images, that is open for reading, and the place where it is, for what is
// attached to it. Of the image it shows only what the policy accepts; the policy is not asked about attachments. It is
// safe for concurrent use. Close it after use.
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

	client   *Client // nil if it was opened by its place alone
	asked    transport.Source
	place    *transport.Place
	text     []byte // of Top
	noted    func(v1.Manifest)
	deadline time.Time

	judge     sync.Once
	judgeErr  error
	admission *admission // nil accepts everything
	top       verdict    // about Top
	covered   sync.Map   // the digests in accepted indexes that are in it
	nested    sync.Once
	nestedErr error
	entries   map[digest.Digest]bool
}

// newSource reads the index or manifest of a place. The place is closed after an error.
func newSource(ctx context.Context, p *transport.Place) (*Source, error) {
	s := &Source{Reader: p.Reader, place: p, Top: p.Top, Digest: p.Digest, OpenedAt: p.OpenedAt}
	if err := s.readTop(ctx); err != nil {
		return nil, errors.Join(err, closePlace(p))
	}
	s.Digest = cmp.Or(s.Digest, s.Top.Digest)
	return s, nil
}

func (s *Source) readTop(ctx context.Context) (err error) {
	if err := verify.Digest(s.Top.Digest); err != nil {
		return err
	}
	var kind string
	if s.text, kind, err = s.Reader.Manifest(ctx, s.Top.Digest.String()); err != nil {
		return ofManifest(err)
	}
	if err := checkManifest(s.text, s.Top); err != nil {
		return err
	}
	s.Top.MediaType, err = verify.ManifestKind(s.text, kind)
	return err
}

// checkManifest compares a manifest with its descriptor.
func checkManifest(text []byte, want v1.Descriptor) error {
	if len(text) > limit.MaxManifest {
		return fmt.Errorf("manifest: %w: %d bytes (limit %d)", fault.ErrLimit, len(text), limit.MaxManifest)
	}
	if got := digest.FromBytes(text); got != want.Digest {
		return fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, want.Digest)
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
func (s *Source) Close() error { return closePlace(s.place) }

// InRegistry tells whether the image is in a registry, so that others can pull it by its name.
func (s *Source) InRegistry() bool {
	return s.asked.Transport == transport.Docker && s.Repository != ""
}

// Named returns the reference of the image in a registry as it was given, with the tag "latest" if it had none; empty
// if the name is none.
func (s *Source) Named() string {
	if named := s.asked.Named(); named != nil {
		return named.String()
	}
	return ""
}

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
	image.Name = s.place.Named
	return image, s.about(err)
}

// about adds the name of the source to an error.
func (s *Source) about(err error) error {
	if s.Given == "" {
		return redact.Error(err)
	}
	return pullError(s.Given, err)
}

// Manifest returns a manifest of the image that the policy accepts, or another one of the place.
func (s *Source) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	d := digest.Digest(name)
	if d == s.Top.Digest {
		return bytes.Clone(s.text), s.Top.MediaType, nil
	}
	text, kind, err := s.Reader.Manifest(ctx, name)
	if err != nil || verify.Digest(d) != nil {
		return text, kind, redact.Error(err)
	}
	if got := digest.FromBytes(text); got != d {
		return nil, "", fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, d)
	}
	s.showManifest(text)
	if s.admission == nil || s.top.accepted {
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
	above := s.top
	_, above.accepted = s.covered.Load(d)
	admitted, err := s.admission.admit(ctx, above, text, kind)
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

// showManifest passes a manifest that was read to the client's checks, which warn of unusual ones.
func (s *Source) showManifest(text []byte) {
	var m v1.Manifest
	if s.noted != nil && json.Unmarshal(text, &m) == nil { // an error is reported where more of it is read
		s.noted(m)
	}
}

// ask asks the policy of the client about the image, once.
func (s *Source) ask(ctx context.Context) error {
	s.judge.Do(func() {
		s.admission = s.client.admission(s.asked, s.Given, s.place)
		s.top, s.judgeErr = s.admission.admit(ctx, verdict{}, s.text, s.Top.MediaType)
	})
	return s.judgeErr
}

// CheckEntries returns an error unless the policy accepts the image as a whole, or each entry of the index, and of
// indexes in it, for some platforms ([store.Select]); none are all. An entry that the place lacks is not judged.
func (s *Source) CheckEntries(ctx context.Context, platforms []v1.Platform) error {
	return s.checkEntries(ctx, platforms, true)
}

// CheckAccepted returns an error unless the policy accepts the image: itself, or of an index every entry, whatever it
// is for, since others may choose an entry that this package does not. It asks the policy also if the source was opened
// without it. Errors are of the class [ErrPolicy] for what is refused.
func (s *Source) CheckAccepted(ctx context.Context) error {
	if err := s.ask(ctx); err != nil {
		return s.about(err)
	}
	return s.checkEntries(ctx, nil, false)
}

func (s *Source) checkEntries(ctx context.Context, platforms []v1.Platform, sparse bool) error {
	if s.admission == nil || s.top.accepted {
		return nil
	}
	image, err := s.Entries(ctx)
	if err != nil {
		return err
	}
	wanted, _ := store.Select(image.Entries, platforms)
	for _, d := range wanted {
		_, _, err := s.Manifest(ctx, d.Digest.String())
		if err != nil && !(sparse && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}
