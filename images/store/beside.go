package store

import (
	"context"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/reflist"
)

// attach has the attachments written, for each name.
func (c *imageCopy) attach(ctx context.Context) error {
	if c.o.Attach == nil {
		return nil
	}
	top := c.root.Descriptor
	top.Annotations, top.Platform = nil, nil
	names := c.names
	if len(names) == 0 {
		names = []Name{{}}
	}
	for i, n := range names {
		if slices.ContainsFunc(names[:i], func(o Name) bool { return o.Image == n.Image }) {
			continue // several names in one layout, where Image is empty
		}
		err := c.o.Attach(ctx, &beside{Writer: c.to, c: c, top: top.Digest.String()},
			Image{Name: n.Image, Top: top, Instances: c.account.Instances})
		if err == nil {
			err = c.refused // Attach may have ignored it, as if an attachment were missing
		}
		if err != nil {
			return nameError(ctx, n, err)
		}
	}
	return nil
}

// beside writes what is attached to an image whose top manifest may not be written yet.
type beside struct {
	Writer
	c   *imageCopy
	top string // the digest
}

// Can tells that nothing is attached if the image is new at the place.
func (b *beside) Can() Abilities {
	can := b.Writer.Can()
	can.Unattached = b.c.o.Absent && b.c.trust && !can.Staged
	return can
}

// WriteBlob counts as one of the uploads.
func (b *beside) WriteBlob(ctx context.Context, d v1.Descriptor, c Content) (string, error) {
	if err := b.c.startUpload(ctx); err != nil {
		return "", err
	}
	defer b.c.endUpload()
	return b.Writer.WriteBlob(ctx, d, c)
}

func (b *beside) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	if name == b.top {
		if err := b.c.ensureTop(ctx); err != nil {
			return nil, "", err
		}
	}
	return b.Writer.Manifest(ctx, name)
}

func (b *beside) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	if name == b.top {
		if err := b.c.ensureTop(ctx); err != nil {
			return v1.Descriptor{}, err
		}
	}
	return b.Writer.Head(ctx, name)
}

// Referrers records that the image has referrers. Then the fallback tag may hold their list, which another copy may
// have written.
func (b *beside) Referrers(ctx context.Context, subject digest.Digest, has func(string) bool) ([]v1.Descriptor, error) {
	found, err := b.Writer.Referrers(ctx, subject, has)
	if len(found) > 0 {
		b.c.attached.Store(true)
	}
	return found, err
}

// writes notes that something is written, for which the top manifest must be there.
func (b *beside) writes(ctx context.Context) error {
	b.c.attached.Store(true)
	return b.c.ensureTop(ctx)
}

func (b *beside) WriteManifest(ctx context.Context, text []byte, mediaType string, o WriteOptions) error {
	if err := b.writes(ctx); err != nil {
		return err
	}
	return b.Writer.WriteManifest(ctx, text, mediaType, o)
}

// UpdateTag needs no top manifest, unless the tag is that of its referrers: what has a tag derived from a digest names the
// digest in its content alone. So the manifest is written once, with its tag. An index whose images are not all copied may
// be refused, and then it gets no signature.
func (b *beside) UpdateTag(ctx context.Context, tag string,
	change func(old []byte) (text []byte, mediaType string, err error)) error {
	if tag == reflist.Tag(digest.Digest(b.top)) || len(b.c.root.leftOut) > 0 {
		if err := b.writes(ctx); err != nil {
			return err
		}
	}
	return b.Writer.UpdateTag(ctx, tag, change)
}
