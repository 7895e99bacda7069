package images

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/verify"
)

// openLayout opens a layout and finds the image that a place chooses. Its manifest or index is there and is what the
// descriptor says: what is signed, verified or shown is what others read in the layout.
func openLayout(ctx context.Context, p transport.Destination, limits Limits,
	temp string) (*layouts.Repository, v1.Descriptor, error) {
	at, err := layouts.OpenRepository(ctx, p, limits.WithDefaults(), temp)
	if err != nil {
		return nil, v1.Descriptor{}, err
	}
	top, err := checkedTop(ctx, at, p)
	if err != nil {
		return nil, v1.Descriptor{}, errors.Join(err, at.Close())
	}
	return at, top, nil
}

// checkedTop returns the descriptor of the image that a place chooses, after a look at its text.
func checkedTop(ctx context.Context, at *layouts.Repository, p transport.Destination) (v1.Descriptor, error) {
	top, err := at.Top(p)
	if err != nil {
		return top, err
	}
	text, kind, err := at.Manifest(ctx, top.Digest.String())
	if err != nil {
		return top, err
	}
	if int64(len(text)) != top.Size {
		return top, fmt.Errorf("manifest: %w: size is %d and not %d", fault.ErrIntegrity, len(text), top.Size)
	}
	top.MediaType, err = verify.ManifestKind(text, kind)
	return top, err
}

// Writer is an image that exists, and the place where it is, for writing attachments. What is written to a layout or an
// archive appears as a whole with Commit; registries have it at once.
type Writer struct {
	store.Writer
	// Image is the image at the destination.
	Image store.Image

	closing func() error
}

// Commit makes sure that what was written lasts: in registries that tags still have it, since other clients may have
// written them at the same time, and in layouts by putting it in place. Changes of tags may be called again.
func (w *Writer) Commit(ctx context.Context) error { return redact.Error(w.Writer.Commit(ctx)) }

// Discard removes what is left, also after Commit.
func (w *Writer) Discard() error { return errors.Join(w.Writer.Discard(), w.closing()) }

// OpenWriter opens the place of an image that exists, for writing attachments. Of the options those for registries,
// Retries, Backoff, Stall, Temp and Events are used. The caller calls Commit, and in any case Discard. The error is of
// the class [transport.ErrNoAttachments] for transports without attachments.
func OpenWriter(ctx context.Context, dest transport.Destination, o CopyOptions) (_ *Writer, err error) {
	if err := o.transports().CheckAttachments(dest); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = redact.Error(fmt.Errorf("%s: %w", dest, err))
		}
	}()
	if !dest.InRegistry() {
		return openLayoutWriter(ctx, dest, o)
	}
	named, err := dest.Repository()
	if err != nil {
		return nil, registry.Wrap(err)
	}
	o.Checked = nil
	remote, err := o.remote(ctx, o.Events)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remote.Close())
		}
	}()
	to, err := remote.Repository(named.Name())
	if err != nil {
		return nil, err
	}
	w := &Writer{Writer: to, closing: remote.Close}
	text, kind, err := to.Manifest(ctx, tagOrDigest(named))
	if err != nil {
		return nil, err
	}
	top := v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if w.Image, err = store.ReadImage(ctx, to, top); err != nil {
		return nil, err
	}
	w.Image.Name = named.String()
	return w, nil
}

// openLayoutWriter is OpenWriter for layouts and archives.
func openLayoutWriter(ctx context.Context, dest transport.Destination, o CopyOptions) (_ *Writer, err error) {
	at, top, err := openLayout(ctx, dest, Limits{}, o.Temp)
	if err != nil {
		return nil, err
	}
	image, err := store.ReadImage(ctx, at, top)
	if err = errors.Join(err, at.Close()); err != nil {
		return nil, err
	}
	image.Name = nameInLayout(top.Annotations[v1.AnnotationRefName])
	to, err := layouts.NewAddition(ctx, dest, Limits{}.WithDefaults(), o.Temp)
	if err != nil {
		return nil, err
	}
	return &Writer{Writer: to, Image: image, closing: func() error { return nil }}, nil
}

// tagOrDigest returns the part of a name that chooses the image in its repository: the digest, else the tag.
func tagOrDigest(named reference.Named) string {
	switch named := named.(type) {
	case reference.Canonical:
		return named.Digest().String()
	case reference.Tagged:
		return named.Tag()
	}
	return "latest"
}
