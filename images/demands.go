package images

import (
	"context"
	"errors"
	"io/fs"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/sigblob"
)

// Demands tells whether images of a name are accepted only with a signature, or not at all. The error is about the
// policy, or of the class [ErrInvalid] for a name that is none.
func (c *Client) Demands(ctx context.Context, name string) (bool, error) {
	n, err := c.transports.Source(name)
	if err != nil {
		return false, err
	}
	if err := c.start(ctx); err != nil {
		return false, err
	}
	if c.o.RequireSigned || len(c.o.TrustedKeys) > 0 || c.policy == nil {
		return c.o.RequireSigned || len(c.o.TrustedKeys) > 0, nil
	}
	rule, err := c.policy.Rule(n)
	return err == nil && !rule.Accepts, err
}

// Accept makes the client accept a manifest under a name without asking the policy. It is for a private copy of an image
// that the policy has accepted under its own name.
func (c *Client) Accept(name string, d digest.Digest) error {
	n, err := c.transports.Source(name)
	if err != nil {
		return err
	}
	c.verified.Store(verifiedKey(n, d), true)
	return nil
}

// verifiedKey identifies a manifest under a name in [Client.verified].
func verifiedKey(n transport.Source, d digest.Digest) string {
	name := n.Path + ":" + n.Name
	if n.Repository != nil {
		name = n.Repository.String()
	}
	return string(n.Transport) + ":" + name + " " + d.String()
}

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
