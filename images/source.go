package images

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Source opens an image, with a name in the form of [ParseSource], for [store.CopyImage], and the place where it is
// for what is attached to it. The name is resolved once: an image in a registry costs one request, and an index none
// beside it. The policy of the client is asked about the image, and about each image of an index that it does not
// accept as a whole when that is read; it is not asked about attachments.
//
// Errors are those of [Client.Open] and [Client.Repository].
func (c *Client) Source(ctx context.Context, name string) (_ *Repository, err error) {
	defer func() { err = pullError(name, err) }()
	asked, err := parseSourceName(name)
	if err != nil {
		return nil, err
	}
	if !asked.transport.keepsAttachments() {
		return nil, &noAttachments{string(asked.transport) + ":" + asked.path}
	}
	ref, err := ParseSource(name)
	if err != nil {
		return nil, err
	}
	n, src, err := c.openSource(ctx, name)
	if err != nil {
		return nil, err
	}
	v := &verifiedSource{ImageSource: src, ref: &clientReference{ImageReference: ref, c: c, name: name}}
	if err := v.admit(ctx, n); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	top := v1.Descriptor{Digest: identityOf(src, v.text), Size: int64(len(v.text))}
	if top.MediaType, err = verify.ManifestKind(v.text, v.kind); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	if remote, ok := src.(*registry.Source); ok {
		return admittedRepository(ctx, v, remote.Repository(), top, asked.repository.String(), src.Close)
	}
	place, entry, err := openLayout(ctx, asked.place(), c.o.Limits, c.o.Temp)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	closing := func() error { return errors.Join(place.Close(), src.Close()) }
	if entry.Digest != top.Digest {
		return nil, errors.Join(fmt.Errorf("%w: the layout has changed", ErrIntegrity), closing())
	}
	return admittedRepository(ctx, v, place, top, nameInLayout(entry.Annotations[v1.AnnotationRefName]), closing)
}

// admittedRepository is an image that the policy accepts, or of which it accepts some entries, at the place where it is.
// closing is called after an error too.
func admittedRepository(ctx context.Context, v *verifiedSource, place store.Reader, top v1.Descriptor, name string,
	closing func() error) (_ *Repository, err error) {
	at := &admittedReader{Reader: place, source: v, top: top.Digest, instances: map[digest.Digest]bool{}}
	r := &Repository{Reader: at, closing: closing}
	if r.Image, err = store.ReadImage(ctx, at, top); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.Image.Name = name
	for _, d := range r.Image.Instances {
		at.instances[d.Digest] = true
	}
	return r, nil
}

// admittedReader reads a place of images, and of one image only what the policy accepts.
type admittedReader struct {
	store.Reader
	source    *verifiedSource
	top       digest.Digest
	instances map[digest.Digest]bool // not changed once the image is open
}

// Manifest returns a manifest of the image, from what was read when it was opened or asking the policy, or another one.
func (r *admittedReader) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	d := digest.Digest(name)
	switch {
	case d == r.top:
		text, kind, err := r.source.GetManifest(ctx, nil)
		return text, kind, redact.Error(err)
	case r.instances[d]:
		text, kind, err := r.source.GetManifest(ctx, &d)
		return text, kind, redact.Error(err)
	}
	return r.Reader.Manifest(ctx, name)
}
