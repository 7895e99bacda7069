package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Reference returns a reference for the containers image library that reads the image by this client, with its
// credentials, retries, policy and lock. Every manifest and blob that is read to its end is compared with its digest.
// The client must be open as long as the reference is used.
func (c *Client) Reference(name string) (types.ImageReference, error) {
	ref, err := ParseSource(name)
	if err != nil {
		return nil, err
	}
	return &clientReference{ImageReference: ref, c: c, name: name}, nil
}

// clientReference is the library's reference, with another source.
type clientReference struct {
	types.ImageReference
	c    *Client
	name string
}

// NewImageSource opens the image. The library's options are not used.
func (r *clientReference) NewImageSource(ctx context.Context, _ *types.SystemContext) (_ types.ImageSource, err error) {
	defer func() {
		if err != nil {
			if configuration := aboutConfiguration(err); configuration != nil {
				err = configuration
				return
			}
			err = redact.Error(fmt.Errorf("image %.300q: %w", r.name, err))
		}
	}()
	n, src, err := r.c.openSource(ctx, r.name)
	if err != nil {
		return nil, err
	}
	v := &verifiedSource{ImageSource: src, ref: r}
	if err := v.admit(ctx, n); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return v, nil
}

// NewImage opens the image and reads its manifest.
func (r *clientReference) NewImage(ctx context.Context, sys *types.SystemContext) (types.ImageCloser, error) {
	src, err := r.NewImageSource(ctx, sys)
	if err != nil {
		return nil, err
	}
	return image.FromSource(ctx, sys, src)
}

// verifiedSource is a source whose content is compared with its digests, and whose manifests the signature policy
// accepts.
type verifiedSource struct {
	types.ImageSource
	ref       *clientReference
	text      []byte // of the manifest or index
	kind      string
	admission *admission
	top       verdict  // about the manifest or index
	covered   sync.Map // the digests in accepted indexes that are in it
}

// admit reads the manifest or index and asks the policy about it.
func (v *verifiedSource) admit(ctx context.Context, n sourceName) error {
	text, kind, err := v.manifest(ctx, nil)
	if err != nil {
		return err
	}
	v.text, v.kind = text, kind
	if v.admission, err = v.ref.c.admission(n, v.ref.name, v.ImageSource); err != nil {
		return err
	}
	if v.admission != nil {
		if v.kind, err = verify.ManifestKind(text, kind); err != nil {
			return err
		}
	}
	if v.top, err = v.admission.admit(ctx, verdict{}, nil, text, v.kind); err != nil {
		return err
	}
	return v.ref.c.record(v.ref.name, identityOf(v.ImageSource, text))
}

// GetSignatures returns none: a copy has the signatures that its caller writes beside it, and the library's copy would
// fail at destinations that keep none.
func (v *verifiedSource) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) {
	return nil, nil
}

func (v *verifiedSource) Reference() types.ImageReference { return v.ref }

// GetManifest returns the text that was opened, or an instance that the policy accepts.
func (v *verifiedSource) GetManifest(ctx context.Context, instance *digest.Digest) ([]byte, string, error) {
	if instance == nil {
		return bytes.Clone(v.text), v.kind, nil
	}
	text, kind, err := v.manifest(ctx, instance)
	if err != nil || v.top.accepted {
		return text, kind, err
	}
	if kind, err = verify.ManifestKind(text, kind); err != nil {
		return nil, "", err
	}
	above := v.top
	if _, covered := v.covered.Load(*instance); covered {
		above.accepted = true
	}
	admitted, err := v.admission.admit(ctx, above, instance, text, kind)
	if err != nil {
		return nil, "", err
	}
	if admitted.accepted && manifest.MIMETypeIsMultiImage(kind) {
		var index v1.Index
		if err := json.Unmarshal(text, &index); err != nil {
			return nil, "", fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
		}
		for _, d := range index.Manifests {
			v.covered.Store(d.Digest, true)
		}
	}
	return text, kind, nil
}

// manifest reads a manifest and compares it with its digest.
func (v *verifiedSource) manifest(ctx context.Context, instance *digest.Digest) ([]byte, string, error) {
	text, kind, err := v.ImageSource.GetManifest(ctx, instance)
	if err != nil {
		return nil, "", err
	}
	if want, known := expectedDescriptor(v.ImageSource); instance != nil || known {
		if instance != nil {
			want.Digest = *instance
		}
		if got := digest.FromBytes(text); got != want.Digest {
			return nil, "", fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got,
				want.Digest)
		}
	}
	var m v1.Manifest
	if json.Unmarshal(text, &m) == nil { // an error is reported where more of it is read
		v.ref.c.oddLayers(v.ref.name)(m)
	}
	return text, kind, nil
}

func (v *verifiedSource) GetBlob(ctx context.Context, info types.BlobInfo,
	cache types.BlobInfoCache) (io.ReadCloser, int64, error) {
	r, size, err := v.ImageSource.GetBlob(ctx, info, cache)
	if err != nil {
		return nil, 0, err
	}
	return struct {
		io.Reader
		io.Closer
	}{verify.NewReader(ctxio.Reader{Ctx: ctx, R: r}, info.Digest, info.Size), r}, size, nil
}
