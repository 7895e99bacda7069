package registry

import (
	"context"
	"encoding/json"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/verify"
)

// fewBlobs is how many blobs are looked for one by one rather than in the manifest of an earlier image.
const fewBlobs = 4

// earlier are the blobs, with their sizes, of the images that the tags of the destinations stand for now. A registry that
// has a manifest has what it refers to, so that these need not be asked for one by one; where one is gone all the same,
// the registry refuses the new manifest, and [pushedRepository.fill] asks for every blob. What cannot be read has none.
func (r *pushedRepository) earlier(ctx context.Context) map[digest.Digest]int64 {
	found := map[digest.Digest]int64{}
	if len(r.p.image.blobs) <= fewBlobs {
		return found
	}
	// No more requests than questions that are saved at best.
	left := len(r.p.image.manifests)
	for _, t := range r.targets {
		if tag := t.tag(); tag != nil {
			r.addEarlier(ctx, tag.Tag(), found, &left)
		}
	}
	return found
}

// addEarlier reads one manifest and, of an index, as many as are left to be read.
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
