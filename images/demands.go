package images

import (
	"context"
	"errors"
	"io/fs"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
)

// Demands tells whether images of a name are accepted only with a signature, or not at all. The error is about the
// policy, or about a name that cannot be parsed.
func (c *Client) Demands(ctx context.Context, name string) (bool, error) {
	n, err := c.transports.Source(name)
	if err != nil {
		return false, err
	}
	if err := c.prepare(ctx); err != nil {
		return false, err
	}
	if c.demandsSigned() || c.policy == nil {
		return c.demandsSigned(), nil
	}
	rule, err := c.policy.Rule(n)
	return err == nil && !rule.Accepts, err
}

// demandsSigned tells whether every image must be signed.
func (c *Client) demandsSigned() bool { return c.o.RequireSigned || c.trustsSigners() }

// trustsSigners tells whether keys or identities decide in place of the policy.
func (c *Client) trustsSigners() bool {
	return len(c.o.TrustedKeys) > 0 || c.o.TrustedIdentities != nil
}

// Lend gives a name to an image at a place that is open: the client opens the name there, and its policy is not asked
// about it. It is for an image that the policy has accepted under its own name. The place must stay open as long as the
// client is used.
func (c *Client) Lend(name string, place store.Reader, top v1.Descriptor) error {
	n, err := c.transports.Source(name)
	if err != nil {
		return err
	}
	c.lent.Store(nameKey(n), transport.Place{Reader: place, Top: top})
	c.verified.Store(verifiedKey(n, top.Digest), true)
	return nil
}

// nameKey identifies a name in [Client.lent].
func nameKey(n transport.Source) string {
	name := n.Path + ":" + n.Name
	if n.Repository != nil {
		name = n.Repository.String()
	}
	return string(n.Transport) + ":" + name
}

// verifiedKey identifies a manifest under a name in [Client.verified].
func verifiedKey(n transport.Source, d digest.Digest) string { return nameKey(n) + " " + d.String() }

// attachedSignatures returns what reads the signatures that are attached to a manifest at a place.
func attachedSignatures(place store.Reader) func(context.Context, digest.Digest) ([][]byte, error) {
	return func(ctx context.Context, of digest.Digest) ([][]byte, error) {
		text, _, err := place.Manifest(ctx, sigblob.Tag(of))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return sigblob.Attached(ctx, text, place.Blob)
	}
}
