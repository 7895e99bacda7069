package images

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registry"
)

// ErrNoAttachments is the class of errors about places that keep no signatures, attestations or other attachments:
// docker-archive:, dir: and containers-storage:.
var ErrNoAttachments = fault.New(fault.Usage, "keeps no signatures or other attachments")

// noAttachments is the error of one place.
type noAttachments struct{ place string }

func (e *noAttachments) Error() string {
	return fmt.Sprintf("%s %v beside an image: docker://, oci: and oci-archive: do", e.place, ErrNoAttachments)
}

func (e *noAttachments) Unwrap() error { return ErrNoAttachments }

// keepsAttachments tells whether images of a transport can have attachments.
func (t Transport) keepsAttachments() bool { return t == Docker || t == OCI || t == OCIArchive }

// CheckAttachments returns an [ErrNoAttachments] if no attachments can be written beside an image at the destination.
func (d Destination) CheckAttachments() error {
	if d.Transport.keepsAttachments() {
		return nil
	}
	return redact.Error(&noAttachments{d.String()})
}

// checkAttachable returns an error if there are attachments and a destination keeps none.
func checkAttachable(dests []Destination, attachments []store.Attachment) error {
	if len(attachments) == 0 {
		return nil
	}
	for _, d := range dests {
		if err := d.CheckAttachments(); err != nil {
			return err
		}
	}
	return nil
}

// attach writes the attachments beside the image at one destination.
func (c *copier) attach(ctx context.Context, to store.Writer, name string) error {
	image, err := c.image(ctx)
	if err != nil {
		return err
	}
	image.Name = name
	for _, a := range c.o.Attachments {
		if err := a.Attach(ctx, to, image); err != nil {
			return err
		}
	}
	return nil
}

// image describes the image that is copied, without a name.
func (c *copier) image(ctx context.Context) (_ store.Image, err error) {
	src, err := c.src.NewImageSource(ctx, c.sys)
	if err != nil {
		return store.Image{}, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	text, kind, err := src.GetManifest(ctx, nil)
	if err != nil {
		return store.Image{}, err
	}
	top := v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
	return store.ReadImage(ctx, manifestsOf{src: src, top: top.Digest}, top)
}

// manifestsOf reads the manifests of a source by their digests. It reads nothing else.
type manifestsOf struct {
	store.Reader
	src types.ImageSource
	top digest.Digest
}

func (m manifestsOf) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	d := digest.Digest(name)
	if d == m.top {
		return m.src.GetManifest(ctx, nil)
	}
	return m.src.GetManifest(ctx, &d)
}

// attachPushed returns what writes the attachments in registries; nil if there are none.
func (c *copier) attachPushed() func(context.Context, *registry.Repository, registry.Target) error {
	if len(c.o.Attachments) == 0 {
		return nil
	}
	return func(ctx context.Context, to *registry.Repository, t registry.Target) error {
		return c.attach(ctx, to, t.Name.String())
	}
}

// attachStaged writes the attachments into a staged layout. Of several names in one layout the first has them, unless
// the others are names in registries: they are those of the digest, and the second stage would not see them in the
// first.
func (c *copier) attachStaged(ctx context.Context, d Destination, out *layouts.Output) error {
	place := layouts.Place{Format: layouts.Format(d.Transport), Path: filepath.Clean(d.Path),
		Name: nameInLayout(d.Name)}
	if len(c.o.Attachments) == 0 || c.attached[place] {
		return nil
	}
	if c.attached == nil {
		c.attached = map[layouts.Place]bool{}
	}
	c.attached[place] = true
	w, err := out.Writer(ctx, Limits{}.WithDefaults(), c.scratch.Dir())
	if err != nil {
		return err
	}
	return c.attach(ctx, w, place.Name)
}

// nameInLayout returns the name of an image in a layout if it is one of a registry, with a host; else it is empty.
func nameInLayout(name string) string {
	host, _, ok := strings.Cut(name, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return ""
	}
	ref, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return ""
	}
	return reference.TagNameOnly(ref).String()
}
