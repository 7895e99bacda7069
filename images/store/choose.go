package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/verify"
)

// IndexEntries returns the entries of an index. Errors are of the classes of input that is invalid or too large.
func IndexEntries(index []byte) ([]v1.Descriptor, error) {
	var all v1.Index
	if err := json.Unmarshal(index, &all); err != nil {
		return nil, fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
	}
	if len(all.Manifests) > limit.MaxIndexEntries {
		return nil, fmt.Errorf("index: %w: %d entries (limit %d)", fault.ErrLimit, len(all.Manifests),
			limit.MaxIndexEntries)
	}
	return all.Manifests, nil
}

// Choose returns the first of the entries of an index that is an image for a platform, as [CopyOptions] says. One
// that names the wanted variant precedes those that have it by default. If there is none and orAny is set, it returns the
// first for Linux. Errors are of the class of input that is invalid.
func Choose(entries []v1.Descriptor, p v1.Platform, orAny bool) (v1.Descriptor, error) {
	var seen []string
	var unnamed, other *v1.Descriptor
	for n, d := range entries {
		if err := verify.Digest(d.Digest); err != nil {
			return v1.Descriptor{}, fmt.Errorf("index: %w", err)
		}
		if d.Platform == nil {
			if len(entries) == 1 {
				return d, nil
			}
			continue
		}
		if platform.Matches(*d.Platform, p) {
			if p.Variant == "" || p.Variant == d.Platform.Variant {
				return d, nil
			}
			unnamed = cmp.Or(unnamed, &entries[n])
		}
		seen = append(seen, fmt.Sprintf("%.40q", platform.Name(*d.Platform)))
		if other == nil && d.Platform.OS == "linux" && IsImage(d, len(entries)) {
			other = &entries[n]
		}
	}
	if unnamed == nil && orAny {
		unnamed = other
	}
	if unnamed != nil {
		return *unnamed, nil
	}
	slices.Sort(seen)
	return v1.Descriptor{}, fmt.Errorf("%w: no image for %s in the index, which has %s", fault.ErrInvalid,
		platform.Name(p), strings.Join(slices.Compact(seen), ", "))
}

// IsImageType tells whether the artifactType of a manifest or of an entry of an index is that of images to run: none, or
// the type of their configuration, which programs made with go-containerregistry write to indexes.
func IsImageType(artifactType string) bool {
	return artifactType == "" || artifactType == v1.MediaTypeImageConfig || artifactType == manifest.DockerV2Schema2ConfigMediaType
}

// IsImage tells whether an entry of an index is an image to run, and no attestation or signature.
func IsImage(entry v1.Descriptor, entries int) bool {
	if !IsImageType(entry.ArtifactType) {
		return false
	}
	if entry.Platform == nil {
		return entries == 1
	}
	return entry.Platform.OS != "unknown" && entry.Platform.Architecture != "unknown"
}
