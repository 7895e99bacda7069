package images

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/redact"
)

// Unverified is an image that the policy was not asked about, for those who look at the signatures that it would be
// asked about. It has what the name stands for and what is attached to that. It has no content, and is no place that
// [Copy] takes. It is safe for concurrent use. Close it after use.
type Unverified struct{ opened *candidate }

// OpenUnverified opens the image with a name in the form of [Client.Open] for what is attached to it, without asking
// the policy.
func (c *Client) OpenUnverified(ctx context.Context, name string) (_ *Unverified, err error) {
	defer func() { err = pullError(name, err) }()
	o, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Unverified{o}, o.closeAfter(o.record())
}

// Digest is the digest of the index or manifest that the name refers to.
func (u *Unverified) Digest() digest.Digest { return u.opened.top.Digest }

// PlaceName is the name of the repository that was read, which may be a mirror of that of the name; see
// [store.Reader.Name].
func (u *Unverified) PlaceName() string { return u.opened.reader.Name() }

// InRegistry tells whether the image is in a registry, so that others can pull it by its name.
func (u *Unverified) InRegistry() bool { return u.opened.inRegistry() }

// Entries describes the image, as [Source.Entries] does.
func (u *Unverified) Entries(ctx context.Context) (store.Image, error) {
	image, err := store.ReadImage(ctx, u.opened.reader, u.opened.top)
	image.Name = u.opened.place.Named
	return image, u.opened.about(err)
}

// Attached is the place of the image, for what is attached to one: it has no manifest of the image, of which it was
// described by the result of Entries.
func (u *Unverified) Attached(image store.Image) store.Reader {
	a := &attachedOnly{Reader: u.opened.reader, own: map[digest.Digest]bool{}}
	for _, d := range image.Subjects() {
		a.own[d.Digest] = true
	}
	a.own[u.opened.top.Digest] = true
	return a
}

// Close closes the place.
func (u *Unverified) Close() error { return closePlace(u.opened.place) }

// attachedOnly is a place without the manifests of an image.
type attachedOnly struct {
	store.Reader
	own map[digest.Digest]bool
}

// Manifest returns a manifest that is none of the image.
func (a *attachedOnly) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	if a.own[digest.Digest(name)] {
		return nil, "", fmt.Errorf("%s: no policy has accepted the image: open it with Client.Open", name)
	}
	text, kind, err := a.Reader.Manifest(ctx, name)
	return text, kind, redact.Error(err)
}
