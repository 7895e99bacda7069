package images

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/internal/registry"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/redact"
)

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

// OpenWriter opens the place of an image that exists, for writing attachments. Of the options those for registries are
// used. The caller calls Commit, and in any case Discard. The error is of the class [transport.ErrNoAttachments] for
// transports without attachments.
func (o CopyOptions) OpenWriter(ctx context.Context, dest transport.Destination) (_ *Writer, err error) {
	if err := o.transports().CheckAttachments(dest); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = redact.Error(fmt.Errorf("%s: %w", dest, err))
		}
	}()
	if !dest.InRegistry() {
		return o.addTo(ctx, dest)
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

// addTo is like OpenWriter, for places on this machine.
func (o CopyOptions) addTo(ctx context.Context, dest transport.Destination) (*Writer, error) {
	row := o.transports().Row(dest.Transport)
	if row.Open == nil || row.Write == nil {
		return nil, unsupported(row)
	}
	place := transport.Options{Limits: Limits{}.WithDefaults(), Temp: o.Temp, Private: o.Temp, Adds: true}
	at, err := row.Open(ctx, dest.Path, dest.Name, place)
	if err != nil {
		return nil, err
	}
	// Opening it checks that the manifest or index exists and matches its descriptor: what is signed is what others
	// read.
	src, err := openTop(ctx, at)
	if err != nil {
		return nil, err
	}
	image, err := (&Unverified{src}).Entries(ctx)
	if err = errors.Join(err, closePlace(at)); err != nil {
		return nil, err
	}
	to, err := row.Write(ctx, dest.Path, dest.Name, place)
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
