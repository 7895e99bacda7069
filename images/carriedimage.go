package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/oci/layout"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/sigblob"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Carried opens an image that was carried to another place, such as an archive, as [Client.Source] opens it where its
// name says: the policy is asked under the name, about the signatures that the place has for the image, whatever
// registries.d says. The place stays open when the result is closed.
//
// Errors are those of [Client.Source].
func (c *Client) Carried(ctx context.Context, name string, place store.Reader,
	top v1.Descriptor) (_ *Repository, err error) {
	defer func() { err = pullError(name, err) }()
	n, err := parseSourceName(name)
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	if err := verify.Digest(top.Digest); err != nil {
		return nil, err
	}
	v := &verifiedSource{ImageSource: &carriedSource{place: place, top: top.Digest}, ref: &clientReference{c: c, name: name}}
	if err := v.admit(ctx, n); err != nil {
		return nil, err
	}
	if top.MediaType, err = verify.ManifestKind(v.text, v.kind); err != nil {
		return nil, err
	}
	top.Size = int64(len(v.text))
	named := ""
	if n.transport == Docker {
		named = n.repository.String()
	}
	return admittedRepository(ctx, v, place, top, named, func() error { return nil })
}

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

// CheckEntries returns an error unless the policy accepts an image of [Client.Source] or [Client.Carried] as a whole, or
// each entry of the index, and of indexes in it, for some platforms ([store.Select]); none are all. An entry that
// the place lacks is not judged.
func (r *Repository) CheckEntries(ctx context.Context, platforms []v1.Platform) error {
	at, ok := r.Reader.(*admittedReader)
	if !ok || at.source.top.accepted {
		return nil
	}
	wanted := store.Select(r.Image.Instances, platforms)
	for n, d := range r.Image.Instances {
		if !wanted[n] {
			continue
		}
		if _, _, err := at.Manifest(ctx, d.Digest.String()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// carriedSource is an image at a place, as a source for asking the policy. Blobs are read at the place.
type carriedSource struct {
	place store.Reader
	top   digest.Digest
}

func (s *carriedSource) GetManifest(ctx context.Context, instance *digest.Digest) ([]byte, string, error) {
	d := s.top
	if instance != nil {
		d = *instance
	}
	text, kind, err := s.place.Manifest(ctx, d.String())
	if err != nil {
		return nil, "", err
	}
	if got := digest.FromBytes(text); got != d {
		return nil, "", fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, d)
	}
	return text, kind, nil
}

// GetSignatures returns the attached signatures.
func (s *carriedSource) GetSignatures(ctx context.Context, instance *digest.Digest) ([][]byte, error) {
	of := s.top
	if instance != nil {
		of = *instance
	}
	text, _, err := s.place.Manifest(ctx, sigblob.Tag(of))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return sigblob.Attached(ctx, text, s.place.Blob)
}

func (s *carriedSource) GetBlob(ctx context.Context, info types.BlobInfo,
	_ types.BlobInfoCache) (io.ReadCloser, int64, error) {
	r, err := s.place.Blob(ctx, v1.Descriptor{Digest: info.Digest, Size: info.Size, MediaType: info.MediaType}, 0)
	return r, info.Size, err
}

// signaturePlace is where attached signatures are looked for, for messages.
func (s *carriedSource) signaturePlace() string {
	if name := s.place.Name(); name != "" {
		return name + ":"
	}
	return ""
}

func (s *carriedSource) Reference() types.ImageReference { return nil }
func (s *carriedSource) Close() error                    { return nil }
func (s *carriedSource) HasThreadSafeGetBlob() bool      { return true }

func (s *carriedSource) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
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
