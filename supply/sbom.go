// Package supply attaches to an image what says what is in it and how it was built: bills of materials and provenance,
// unsigned as referrers and signed as attestations.
package supply

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/supply/inventory"
	"github.com/operator-bindery/bindery/supply/sbom"
)

// NameAnnotation is the annotation of a manifest that attaches a bill of materials, with the repository that the
// document names the image by. A layout does not have it anywhere else.
const NameAnnotation = "io.github.operator-bindery.image.name"

// Signing is how attestations are signed. Without keys nothing is signed.
type Signing struct {
	Keys signature.Keys
	// Legacy also writes attestations to the .att tag.
	Legacy bool
	// AttAlone is that of [signature.Attesting].
	AttAlone func(error)
	// Created is the time in annotations; 1970 if zero.
	Created time.Time

	mu   sync.Mutex
	made []signature.Made
}

// Made returns the attestations that were written or found so far.
func (s *Signing) Made() []signature.Made {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]signature.Made{}, s.made...)
}

// attest signs statements about the subjects of an image. It does nothing without keys.
func (s *Signing) attest(ctx context.Context, to store.Writer, image store.Image, predicateType string,
	predicate func(context.Context, v1.Descriptor) (json.RawMessage, error)) error {
	if s.Keys == nil {
		return nil
	}
	a := &signature.Attesting{Keys: s.Keys, Type: predicateType, Predicate: predicate,
		Legacy: s.Legacy, AttAlone: s.AttAlone, Created: s.Created}
	err := a.Attach(ctx, to, image)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, a.Made()...)
	return err
}

// SBOM attaches the bills of materials of an image, of the index and of each image in it: unsigned, and with keys as
// attestations too. It implements [store.Attachment].
type SBOM struct {
	Formats []sbom.Format
	Options sbom.Options
	// Name is the repository that documents name the image by if it has no name at its destination.
	Name string
	// Inventory returns what is in the image with a digest.
	Inventory func(ctx context.Context, top digest.Digest) (*inventory.Inventory, error)
	Signing   *Signing
}

var _ store.Attachment = (*SBOM)(nil)

// Attach implements [store.Attachment].
func (s *SBOM) Attach(ctx context.Context, to store.Writer, image store.Image) error {
	found, err := s.Inventory(ctx, image.Top.Digest)
	if err != nil {
		return err
	}
	name := Repository(image.Name)
	name = cmp.Or(name, s.Name)
	for _, format := range s.Formats {
		for _, subject := range image.Subjects() {
			if err := s.one(ctx, to, found, subject, name, format); err != nil {
				return fmt.Errorf("attach the bill of materials (%s) of %s: %w", format, subject.Digest, err)
			}
		}
		err := s.Signing.attest(ctx, to, image, format.PredicateType(),
			func(_ context.Context, subject v1.Descriptor) (json.RawMessage, error) {
				return s.document(found, subject.Digest, name, format)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// maxSigned is the largest document in bytes that verifiers read as the predicate of an attestation: 16 MiB in base64,
// with the rest of the statement.
const maxSigned = 16<<20/4*3 - 4096

// Check returns an error if a document of the image is too large to be signed. It is for finding out before anything is
// written.
func (s *SBOM) Check(found *inventory.Inventory, name string) error {
	if s.Signing.Keys == nil {
		return nil
	}
	for _, format := range s.Formats {
		for _, subject := range found.Subjects() {
			of, ok := found.Of(subject, name)
			if !ok {
				continue
			}
			var n size
			if err := format.Write(&n, of, s.Options); err != nil {
				return err
			}
			if n > maxSigned {
				return fmt.Errorf("%w: the bill of materials (%s) of %s has %d bytes, and verifiers read "+
					"attestations of at most %d: it can be attached unsigned", fault.ErrLimit, format, subject, n, maxSigned)
			}
		}
	}
	return nil
}

// size counts what is written to it.
type size int64

func (n *size) Write(b []byte) (int, error) {
	*n += size(len(b))
	return len(b), nil
}

// one attaches an unsigned document.
func (s *SBOM) one(ctx context.Context, to store.Writer, found *inventory.Inventory, subject v1.Descriptor,
	name string, format sbom.Format) error {
	content, err := s.document(found, subject.Digest, name, format)
	if content == nil || err != nil {
		return err
	}
	annotations := map[string]string{}
	if name != "" {
		annotations[NameAnnotation] = name
	}
	_, err = referrers.Attach(ctx, to, subject, referrers.Artifact{Type: format.MediaType(), Content: content,
		Annotations: annotations, Created: s.Signing.Created})
	return err
}

// document returns a document; nil for an entry of an index that is no image.
func (s *SBOM) document(found *inventory.Inventory, subject digest.Digest, name string,
	format sbom.Format) ([]byte, error) {
	of, ok := found.Of(subject, name)
	if !ok {
		return nil, nil
	}
	var b bytes.Buffer
	err := format.Write(&b, of, s.Options)
	return b.Bytes(), err
}

// Repository returns the repository in a name of an image, without tag and digest.
func Repository(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		name = name[:at]
	}
	return name
}
