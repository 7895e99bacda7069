package policy

import (
	"context"
	"crypto/fips140"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/transport"
)

// Judge asks the policy about a manifest.
func (p *file) Judge(ctx context.Context, n transport.Source, e *trust.Evidence) (refused, err error) {
	rule, named, rs, err := p.rule(n)
	if err != nil {
		return nil, err
	}
	// A policy that decides by the name needs no signatures.
	probe := &nameOnly{ref: named}
	refused, err = p.ask(ctx, rs, e.Signed, image.UnparsedInstance(probe, nil))
	if err != nil || !probe.asked {
		return refused, err
	}
	if err := p.checkKeys(rule.Scope, rs); err != nil {
		return nil, err
	}
	return p.askWith(ctx, named, rs, e)
}

// ask asks the policy about an image that the library reads. The error refused is its answer.
func (p *file) ask(ctx context.Context, rs []requirement, signed bool, unparsed types.UnparsedImage) (refused, err error) {
	// A policy context must not be used concurrently. Each question has its own, as making one is cheap.
	pc, err := signature.NewPolicyContext(p.policy)
	if err != nil {
		return nil, &trust.PolicyFileError{File: p.path, Err: err}
	}
	pc.RequireSignatureVerification(signed)
	ok := false
	decide := func() { ok, refused = pc.IsRunningImageAllowed(ctx, unparsed) }
	if slices.ContainsFunc(rs, func(r requirement) bool { return r.Type == "signedBy" }) {
		// The fingerprints that name keys of OpenPGP are SHA-1, which FIPS 140 does not allow.
		fips140.WithoutEnforcement(decide)
	} else {
		decide()
	}
	if err := pc.Destroy(); err != nil {
		return nil, err
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case ok:
		return nil, nil
	case refused == nil:
		return errors.New("the image is not allowed"), nil
	}
	return refused, nil
}

// askWith asks the policy about an image and its signatures.
//
// The library takes sigstore's signatures only from sources of its own: what a types.ImageSource returns is to it a
// signature of GPG. So the text and the signatures are put into a directory of its transport "dir:".
func (p *file) askWith(ctx context.Context, named types.ImageReference, rs []requirement, e *trust.Evidence) (refused, err error) {
	e.Read = true
	if e.Original != nil {
		// A store has the manifest that was signed, beside the one that is made of its layers.
		e.Found = -1
		return p.ask(ctx, rs, e.Signed, image.UnparsedInstanceWithReference(image.UnparsedInstance(e.Original, nil), named))
	}
	var blobs [][]byte
	if e.Signatures != nil {
		if blobs, err = e.Signatures(ctx, e.Digest); err != nil {
			return nil, fmt.Errorf("reading signatures: %w", err)
		}
	}
	e.Found = len(blobs)
	dir, err := os.MkdirTemp(e.Dir, "signed-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := map[string][]byte{"manifest.json": e.Text}
	for i, blob := range blobs {
		files[fmt.Sprintf("signature-%d", i+1)] = blob
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	ref, err := directory.NewReference(dir)
	if err != nil {
		return nil, err
	}
	src, err := ref.NewImageSource(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	return p.ask(ctx, rs, e.Signed, image.UnparsedInstanceWithReference(image.UnparsedInstance(src, nil), named))
}

// nameOnly is a source with a name and no content. It records whether the content was requested.
type nameOnly struct {
	ref   types.ImageReference
	asked bool
}

var errNameOnly = errors.New("only the name is known")

func (n *nameOnly) Reference() types.ImageReference { return n.ref }
func (n *nameOnly) Close() error                    { return nil }
func (n *nameOnly) HasThreadSafeGetBlob() bool      { return false }

func (n *nameOnly) GetManifest(context.Context, *digest.Digest) ([]byte, string, error) {
	n.asked = true
	return nil, "", errNameOnly
}

func (n *nameOnly) GetBlob(context.Context, types.BlobInfo, types.BlobInfoCache) (io.ReadCloser, int64, error) {
	n.asked = true
	return nil, 0, errNameOnly
}

func (n *nameOnly) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) {
	n.asked = true
	return nil, errNameOnly
}

func (n *nameOnly) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}
