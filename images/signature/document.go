package signature

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/verify"
)

// The limits of what is read for one image.
const (
	maxSignature   = sigblob.MaxSize // bytes of a payload or a bundle with a signature
	maxAttestation = 16 << 20        // bytes of a bundle or an envelope with an attestation
	maxTotal       = 128 << 20
)

// newBudget is for an image with all that is in its index.
func newBudget() *store.Budget {
	return store.Limits{Count: reflist.MaxReferrers, Manifests: maxTotal, Content: maxTotal}.NewBudget()
}

// document is a signature or an attestation of a subject: a layer of a tag that is derived from its digest, or a bundle
// that is a referrer of it.
type document struct {
	in       form
	manifest digest.Digest
	// layer has the content; nil if the tag or the referrer as a whole is not what it should be.
	layer   *v1.Descriptor
	content []byte
	// err is why it cannot be read, and class what is wrong with its content. With an err and no class the reason says
	// nothing about the content, such as a failed request: whether there is a signature is not known then.
	err   error
	class Class
}

// documents visits the documents of one form, in the order of the manifest or of the list of referrers. Errors are
// those of visit, and those of reading a layer or the list of referrers.
func (v *verifier) documents(ctx context.Context, in form, visit func(document) error) error {
	switch in {
	case formSig:
		return v.tagged(ctx, in, simpleSigningType, maxSignature, visit)
	case formAtt:
		return v.tagged(ctx, in, envelopeMedia, maxAttestation, visit)
	}
	return v.bundles(ctx, visit)
}

// tagOf returns the tag of the signatures (.sig) or attestations (.att) of the subject.
func (v *verifier) tagOf(in form) string { return referrers.TagOf(v.subject, "."+string(in)) }

// tagged visits the layers of a tag that is derived from the subject's digest.
func (v *verifier) tagged(ctx context.Context, in form, mediaType string, most int64,
	visit func(document) error) error {
	text, _, err := v.r.Manifest(ctx, v.tagOf(in))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	manifest := digest.FromBytes(text)
	if err != nil {
		return visit(document{in: in, manifest: manifest, err: err, class: unreadClass(err)})
	}
	layers, err := sigblob.Layers(text)
	if err != nil {
		return visit(document{in: in, manifest: manifest, err: err, class: classOf(err)})
	}
	for _, l := range layers {
		d := document{in: in, manifest: manifest, layer: &l}
		if l.MediaType != mediaType {
			d.err, d.class = fmt.Errorf("the layer's type is %.100q, expected %q", l.MediaType, mediaType), MediaType
		}
		if err := v.read(ctx, d, most, visit); err != nil {
			return err
		}
	}
	return nil
}

// bundles visits the referrers that are Sigstore bundles. What a list says of a referrer is not used but for its
// digest: some registries list another artifactType, and no annotations.
func (v *verifier) bundles(ctx context.Context, visit func(document) error) error {
	listed, problems, err := referrers.List(ctx, v.r, v.subject, v.left)
	if err != nil {
		return v.unread(err)
	}
	for _, p := range problems {
		if p.Digest == v.subject {
			continue // an image that lists itself
		}
		if err := visit(document{in: formBundle, manifest: p.Digest, err: p.Err, class: Corrupt}); err != nil {
			return err
		}
	}
	most := int64(maxAttestation)
	if v.o.Type == PredicateSign {
		most = maxSignature
	}
	for _, r := range listed {
		if r.ArtifactType != BundleType && !slices.ContainsFunc(r.Layers, isBundle) {
			continue
		}
		d := document{in: formBundle, manifest: r.Digest}
		if len(r.Layers) == 1 && isBundle(r.Layers[0]) {
			d.layer = &r.Layers[0]
		} else {
			d.err = fmt.Errorf("%w: the manifest has not one layer with a bundle", fault.ErrInvalid)
			d.class = MediaType
		}
		if err := v.read(ctx, d, most, visit); err != nil {
			return err
		}
	}
	return nil
}

func isBundle(l v1.Descriptor) bool { return slices.Contains(bundleTypes, l.MediaType) }

// read reads the layer of a document and visits the document. A layer of more than most bytes is not read.
func (v *verifier) read(ctx context.Context, d document, most int64, visit func(document) error) error {
	if d.err == nil {
		d.content, d.err = v.blob(ctx, *d.layer, most)
		d.class = unreadClass(d.err)
	}
	if d.err != nil && d.class == "" {
		return v.unread(d.err)
	}
	return visit(d)
}

// blob reads a blob, and counts it for the image.
func (v *verifier) blob(ctx context.Context, d v1.Descriptor, most int64) ([]byte, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, err
	}
	switch {
	case d.Size < 0:
		return nil, fmt.Errorf("%w: size %d", fault.ErrInvalid, d.Size)
	case d.Size > most:
		return nil, fmt.Errorf("%w: %d bytes (limit %d)", fault.ErrLimit, d.Size, most)
	}
	if err := v.left.TakeContent(d.Size, "signatures"); err != nil {
		return nil, err
	}
	r, err := v.r.Blob(ctx, d, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var content bytes.Buffer
	content.Grow(int(d.Size))
	if _, err := io.Copy(&content, io.LimitReader(r, d.Size+1)); err != nil {
		return nil, err
	}
	if int64(content.Len()) != d.Size || d.Digest.Algorithm().FromBytes(content.Bytes()) != d.Digest {
		return nil, fmt.Errorf("%w: %s has other content", fault.ErrIntegrity, d.Digest)
	}
	return content.Bytes(), nil
}

// unreadClass returns the class of content that is not what it should be; empty for other errors, and for none.
func unreadClass(err error) Class {
	switch {
	case errors.Is(err, fault.ErrLimit):
		return TooLarge
	case errors.Is(err, fault.ErrIntegrity), errors.Is(err, fault.ErrInvalid), errors.Is(err, fs.ErrNotExist):
		return Corrupt
	}
	return ""
}

// unread wraps an error after which it is not known whether there is a signature.
func (v *verifier) unread(err error) error {
	return fmt.Errorf("looking for signatures of %s: %w", v.subject, err)
}

// present visits the documents of one form that can be read; a tag as a whole must be one that can.
func (v *verifier) present(ctx context.Context, in form, visit func(document)) error {
	return v.documents(ctx, in, func(d document) error {
		if d.err == nil {
			visit(d)
		} else if d.layer == nil && in != formBundle {
			return fmt.Errorf("the tag %s: %w", v.tagOf(in), d.err)
		}
		return nil
	})
}
