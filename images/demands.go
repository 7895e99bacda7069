package images

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/oci/layout"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/sigblob"
)

// Demands tells whether images of a name are accepted only with a signature, or not at all. The error is about the
// policy, or of the class [ErrInvalid] for a name that is none.
func (c *Client) Demands(ctx context.Context, name string) (bool, error) {
	n, err := parseSourceName(name)
	if err != nil {
		return false, err
	}
	if err := c.start(ctx); err != nil {
		return false, err
	}
	if c.o.RequireSigned || len(c.o.TrustedKeys) > 0 || c.policy == nil {
		return c.o.RequireSigned || len(c.o.TrustedKeys) > 0, nil
	}
	ref, err := n.policyName()
	if err != nil {
		return false, err
	}
	_, rs, err := c.policy.requirements(ref)
	for _, r := range rs {
		if r.Type != "insecureAcceptAnything" {
			return true, nil
		}
	}
	return false, err
}

// Accept makes the client accept a manifest under a name without asking the policy. It is for a private copy of an image
// that the policy has accepted under its own name.
func (c *Client) Accept(name string, d digest.Digest) error {
	n, err := parseSourceName(name)
	if err != nil {
		return err
	}
	ref, err := n.reference()
	if err == nil {
		c.verified.Store(verifiedKey(ref, d), true)
	}
	return err
}

// verifiedKey identifies a manifest under a name in [Client.verified].
func verifiedKey(ref types.ImageReference, d digest.Digest) string {
	return ref.Transport().Name() + ":" + ref.StringWithinTransport() + " " + d.String()
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

// policyName is the reference of a name for the policy. An image that was carried from a layout has the name of a
// directory that may be elsewhere; the library's reference needs one that is here.
func (n sourceName) policyName() (types.ImageReference, error) {
	ref, err := n.reference()
	if err != nil && n.transport == OCI && errors.Is(err, fs.ErrNotExist) {
		return absentLayout{path: n.path}, nil
	}
	return ref, err
}

// absentLayout is the name of an OCI layout in a directory that is not here, for the policy.
type absentLayout struct {
	types.ImageReference
	path string
}

func (l absentLayout) Transport() types.ImageTransport     { return layout.Transport }
func (l absentLayout) StringWithinTransport() string       { return l.path }
func (l absentLayout) DockerReference() reference.Named    { return nil }
func (l absentLayout) PolicyConfigurationIdentity() string { return path.Clean(l.path) }
func (l absentLayout) PolicyConfigurationNamespaces() []string {
	var parents []string
	for dir := path.Dir(path.Clean(l.path)); dir != "/" && dir != "."; dir = path.Dir(dir) {
		parents = append(parents, dir)
	}
	return parents
}
