package registry

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// pushedImage is the tree of manifests of an image that is to be pushed.
type pushedImage struct {
	// manifests are all manifests, each once and after those that it refers to. The tag names the last one.
	manifests []pushedManifest
	// blobs are all blobs, each once, in the order of the manifests.
	blobs []v1.Descriptor
}

// pushedManifest is one manifest or index.
type pushedManifest struct {
	digest digest.Digest
	kind   string
	text   []byte
	blobs  []v1.Descriptor
}

// top is the manifest that the tag names.
func (i *pushedImage) top() pushedManifest { return i.manifests[len(i.manifests)-1] }

// readPushed reads the manifests of an image, which the policy must accept.
func readPushed(ctx context.Context, src types.ImageSource, policy *signature.PolicyContext) (*pushedImage, error) {
	r := &pushedReader{policy: policy, src: src, image: &pushedImage{}, seen: map[digest.Digest]bool{}, added: map[digest.Digest]bool{},
		sizes: verify.Sizes{}}
	return r.image, r.read(ctx, nil, 0)
}

type pushedReader struct {
	policy *signature.PolicyContext
	src    types.ImageSource
	image  *pushedImage
	seen   map[digest.Digest]bool // manifests
	added  map[digest.Digest]bool // blobs
	sizes  verify.Sizes           // of blobs and manifests
	// entries counts the entries of all indexes together.
	entries int
}

// read adds one manifest and those that it refers to.
func (r *pushedReader) read(ctx context.Context, instance *digest.Digest, depth int) error {
	if _, err := r.policy.IsRunningImageAllowed(ctx, image.UnparsedInstance(r.src, instance)); err != nil {
		return fmt.Errorf("source image rejected: %w", err)
	}
	text, kind, err := r.src.GetManifest(ctx, instance)
	if err != nil {
		return err
	}
	m := pushedManifest{digest: digest.FromBytes(text), kind: kind, text: text}
	if instance != nil && *instance != m.digest {
		return fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", fault.ErrIntegrity, m.digest, *instance)
	}
	if r.seen[m.digest] {
		return nil
	}
	r.seen[m.digest] = true
	if err := r.sizes.AddManifest(text); err != nil {
		return fmt.Errorf("manifest %s: %w", m.digest, err)
	}
	var parsed struct {
		Config            v1.Descriptor
		Layers, Manifests []v1.Descriptor
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		return fmt.Errorf("manifest %s: %w: %v", m.digest, fault.ErrInvalid, err)
	}
	switch kind {
	case v1.MediaTypeImageIndex, manifest.DockerV2ListMediaType:
		r.entries += len(parsed.Manifests)
		if r.entries > limit.MaxIndexEntries || depth >= limit.MaxIndexDepth {
			return fmt.Errorf("index %s: %w: more than %d images, or indexes in more than %d indexes", m.digest,
				fault.ErrLimit, limit.MaxIndexEntries, limit.MaxIndexDepth)
		}
		for _, child := range parsed.Manifests {
			if err := verify.Digest(child.Digest); err != nil {
				return err
			}
			if err := r.read(ctx, &child.Digest, depth+1); err != nil {
				return err
			}
		}
	case v1.MediaTypeImageManifest, manifest.DockerV2Schema2MediaType:
		if err := r.addBlobs(&m, append(parsed.Layers, parsed.Config)); err != nil {
			return err
		}
	default:
		return fmt.Errorf("manifest %s: %w: media type %.80q cannot be pushed", m.digest, fault.ErrInvalid, kind)
	}
	r.image.manifests = append(r.image.manifests, m)
	return nil
}

// addBlobs adds the layers and the configuration of a manifest, but no foreign layers, which have URLs of their own.
func (r *pushedReader) addBlobs(m *pushedManifest, blobs []v1.Descriptor) error {
	if len(blobs) > limit.MaxLayers+1 {
		return fmt.Errorf("manifest %s: %w: %d layers (limit %d)", m.digest, fault.ErrLimit, len(blobs)-1,
			limit.MaxLayers)
	}
	for _, b := range blobs {
		if err := verify.Digest(b.Digest); err != nil {
			return fmt.Errorf("manifest %s: %w", m.digest, err)
		}
		if b.Size < 0 {
			return fmt.Errorf("manifest %s: %w: %s has the size %d", m.digest, fault.ErrInvalid, b.Digest, b.Size)
		}
		if len(b.URLs) > 0 && foreignLayers[b.MediaType] {
			continue
		}
		m.blobs = append(m.blobs, b)
		if !r.added[b.Digest] {
			r.added[b.Digest] = true
			r.image.blobs = append(r.image.blobs, b)
		}
	}
	return nil
}

// foreignLayers are the media types of layers that registries need not have.
var foreignLayers = map[string]bool{
	"application/vnd.oci.image.layer.nondistributable.v1.tar":      true,
	"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip": true,
	"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd": true,
	manifest.DockerV2Schema2ForeignLayerMediaType:                  true,
	manifest.DockerV2Schema2ForeignLayerMediaTypeGzip:              true,
}
