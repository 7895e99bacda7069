package medium

import (
	"encoding/json"
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// parts is what a manifest refers to.
type parts struct {
	// blobs are the configuration and the layers that have to be there, manifests the entries of an index.
	blobs, manifests []key
	// subject is what the manifest refers to.
	subject *key
}

// partsOf reads a manifest. Layers that are fetched from elsewhere, by their URLs, are no part.
func partsOf(text []byte) (*parts, error) {
	var m struct {
		Config    *v1.Descriptor  `json:"config"`
		Layers    []v1.Descriptor `json:"layers"`
		Blobs     []v1.Descriptor `json:"blobs"` // of a draft of the image specification
		Manifests []v1.Descriptor `json:"manifests"`
		Subject   *v1.Descriptor  `json:"subject"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	p := &parts{}
	if m.Config != nil {
		m.Blobs = append(m.Blobs, *m.Config)
	}
	m.Blobs = append(m.Blobs, m.Layers...)
	if len(m.Blobs) > maxBlobs || len(m.Manifests) > limit.MaxIndexEntries {
		return nil, fmt.Errorf("%w: a manifest of %d blobs and %d manifests", fault.ErrLimit, len(m.Blobs),
			len(m.Manifests))
	}
	for _, d := range m.Blobs {
		k, err := keyOf(d.Digest)
		if err != nil {
			return nil, err
		}
		if len(d.URLs) == 0 {
			p.blobs = append(p.blobs, k)
		}
	}
	for _, d := range m.Manifests {
		k, err := keyOf(d.Digest)
		if err != nil {
			return nil, err
		}
		p.manifests = append(p.manifests, k)
	}
	if m.Subject != nil {
		k, err := keyOf(m.Subject.Digest)
		if err != nil {
			return nil, err
		}
		p.subject = &k
	}
	return p, nil
}

// entries are the manifests, as a walk has them.
func (p *parts) entries() *store.Parts {
	e := &store.Parts{}
	for _, k := range p.manifests {
		e.Manifests = append(e.Manifests, v1.Descriptor{Digest: k.digest()})
	}
	return e
}

// maxBlobs is how many blobs a manifest may have: signatures are layers too.
const maxBlobs = 2 * limit.MaxLayers

// typeOf returns the media type of a manifest, from its text if none is known.
func typeOf(text []byte, mediaType string) string {
	if mediaType == "" {
		return manifest.GuessMIMEType(text)
	}
	return mediaType
}
