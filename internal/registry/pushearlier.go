package registry

import (
	"context"
	"encoding/json"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/verify"
)

// fewBlobs is the number of blobs up to which each is asked for, rather than reading the manifest of an earlier image.
const fewBlobs = 4

// earlier returns the blobs and sizes of the images that the tags point to now. A registry that has a manifest has its
// blobs, so that these need no requests. If one is missing anyway, the registry refuses the new manifest, and
// [pushedRepository.fill] asks for every blob. Manifests that cannot be read count as empty.
func (r *pushedRepository) earlier(ctx context.Context) map[digest.Digest]int64 {
	found := map[digest.Digest]int64{}
	if len(r.p.image.blobs) <= fewBlobs {
		return found
	}
	// At most as many requests as can be saved.
	left := len(r.p.image.manifests)
	for _, t := range r.targets {
		if tag := t.tag(); tag != nil {
			r.addEarlier(ctx, tag.Tag(), found, &left)
		}
	}
	return found
}

// addEarlier reads one manifest and, of an index, the manifests in it, at most left in all.
func (r *pushedRepository) addEarlier(ctx context.Context, name string, found map[digest.Digest]int64, left *int) {
	if *left <= 0 || ctx.Err() != nil {
		return
	}
	*left--
	text, _, err := r.repo.manifest(ctx, name, 0)
	if err != nil || verify.Digest(digest.Digest(name)) == nil && digest.FromBytes(text) != digest.Digest(name) {
		return
	}
	var m struct {
		Config            v1.Descriptor
		Layers, Manifests []v1.Descriptor
	}
	if json.Unmarshal(text, &m) != nil {
		return
	}
	for _, b := range append(m.Layers, m.Config) {
		if verify.Digest(b.Digest) == nil && !foreignLayers[b.MediaType] {
			found[b.Digest] = b.Size
		}
	}
	for _, child := range m.Manifests {
		if verify.Digest(child.Digest) == nil {
			r.addEarlier(ctx, child.Digest.String(), found, left)
		}
	}
}
