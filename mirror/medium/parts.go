package medium

import (
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
)

// parts is what a manifest refers to.
type parts struct {
	// blobs are the configuration and the layers that have to be there, manifests the entries of an index.
	blobs, manifests []key
	// subject is what the manifest refers to.
	subject *key
}

// partsOf reads a manifest, see [store.PartsOf]. Layers that are fetched from elsewhere, by their URLs, are no part.
func partsOf(text []byte) (*parts, error) {
	m, err := store.PartsOf(text)
	if err != nil {
		return nil, err
	}
	p := &parts{}
	if p.manifests, err = keysOf(m.Manifests); err != nil {
		return nil, err
	}
	here := slices.DeleteFunc(m.Blobs, func(d v1.Descriptor) bool { return len(d.URLs) > 0 })
	if p.blobs, err = keysOf(here); err != nil || m.Subject == nil {
		return p, err
	}
	k, err := keyOf(m.Subject.Digest)
	p.subject = &k
	return p, err
}

func keysOf(all []v1.Descriptor) (keys []key, err error) {
	for _, d := range all {
		k, err := keyOf(d.Digest)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// entries are the manifests, as a walk has them.
func (p *parts) entries() *store.Parts {
	e := &store.Parts{}
	for _, k := range p.manifests {
		e.Manifests = append(e.Manifests, v1.Descriptor{Digest: k.digest()})
	}
	return e
}

// typeOf returns the media type of a manifest, from its text if none is known.
func typeOf(text []byte, mediaType string) string {
	if mediaType == "" {
		return manifest.GuessMIMEType(text)
	}
	return mediaType
}
