package supply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/supply/provenance"
)

// Provenance attaches how an image was built, to the index and to each image in it: with keys as attestations, else as
// unsigned statements. It implements [store.Attachment].
type Provenance struct {
	// Name is the repository that statements name the image by if it has no name at its destination.
	Name string
	// Build returns the build of the image with a digest.
	Build   func(ctx context.Context, top digest.Digest) (*provenance.Build, error)
	Signing *Signing
}

var _ store.Attachment = (*Provenance)(nil)

// Attach implements [store.Attachment].
func (p *Provenance) Attach(ctx context.Context, to store.Writer, image store.Image) error {
	build, err := p.Build(ctx, image.Top.Digest)
	if err != nil {
		return err
	}
	predicate, err := build.Predicate()
	if err != nil {
		return err
	}
	if p.Signing.Keys != nil {
		return p.Signing.attest(ctx, to, image, provenance.PredicateType,
			func(context.Context, v1.Descriptor) (json.RawMessage, error) { return predicate, nil })
	}
	name := Repository(image.Name)
	name = cmp.Or(name, p.Name)
	for _, subject := range image.Subjects() {
		text, err := provenance.Statement(subject.Digest, name, provenance.PredicateType, predicate)
		if err != nil {
			return err
		}
		if _, err := referrers.Attach(ctx, to, subject, referrers.Artifact{Type: provenance.StatementType,
			Content: text, Created: p.Signing.Created,
			Annotations: map[string]string{"in-toto.io/predicate-type": provenance.PredicateType}}); err != nil {
			return fmt.Errorf("attach the provenance of %s: %w", subject.Digest, err)
		}
	}
	return nil
}
