package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ManifestKind is the media type of a manifest, provided that its text and what came with it agree, and that it cannot
// be understood in two ways: see [Unambiguous].
func ManifestKind(text []byte, kind string) (string, error) {
	var m struct {
		Version   json.RawMessage   `json:"schemaVersion"`
		MediaType string            `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
		Layers    []json.RawMessage `json:"layers"`
		Config    json.RawMessage   `json:"config"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return "", fmt.Errorf("%w: not a manifest: %v", fault.ErrInvalid, err)
	}
	if err := Unambiguous(text); err != nil {
		return "", err
	}
	if string(m.Version) == "1" {
		return "", fmt.Errorf("%w: an image of Docker's schema 1, whose layers have no sizes and which registries no "+
			"longer take: have its owner push it again by a current program", fault.ErrInvalid)
	}
	if m.Manifests != nil && (m.Layers != nil || m.Config != nil) {
		return "", fmt.Errorf("%w: ambiguous manifest: it has images and layers", fault.ErrInvalid)
	}
	if given, _, err := mime.ParseMediaType(kind); err == nil {
		kind = given
	}
	kind = cmp.Or(kind, m.MediaType)
	if m.MediaType != "" && m.MediaType != kind {
		return "", fmt.Errorf("%w: media type %.80q, but the manifest says %.80q", fault.ErrInvalid, kind, m.MediaType)
	}
	switch kind {
	case v1.MediaTypeImageIndex, manifest.DockerV2ListMediaType:
		if m.Manifests == nil {
			return "", fmt.Errorf("%w: media type %.80q, but no list of images", fault.ErrInvalid, kind)
		}
	case v1.MediaTypeImageManifest, manifest.DockerV2Schema2MediaType:
		if m.Manifests != nil {
			return "", fmt.Errorf("%w: media type %.80q, but a list of images", fault.ErrInvalid, kind)
		}
	default:
		return "", fmt.Errorf("%w: unsupported media type %.80q of a manifest", fault.ErrInvalid, kind)
	}
	return kind, nil
}
