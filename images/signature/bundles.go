package signature

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// bundles verifies the referrers that are Sigstore bundles. What a list says of a referrer is not used but for its
// digest: some registries list another artifactType, and no annotations (SUPPLY c-4).
func (v *verifier) bundles(ctx context.Context) error {
	listed, err := v.r.Referrers(ctx, v.subject)
	if err != nil {
		return fmt.Errorf("looking for signatures of %s: %w", v.subject, err)
	}
	seen := map[string]bool{}
	for _, d := range listed {
		if seen[d.Digest.String()] || d.Digest == v.subject ||
			d.MediaType != "" && d.MediaType != v1.MediaTypeImageManifest {
			continue
		}
		seen[d.Digest.String()] = true
		if err := v.referrer(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// referrer verifies one referrer, if it is a bundle of this subject.
func (v *verifier) referrer(ctx context.Context, d v1.Descriptor) error {
	f := Finding{Form: string(formBundle), Manifest: d.Digest}
	text, _, err := v.r.Manifest(ctx, d.Digest.String())
	if err != nil {
		return v.unread(f, err)
	}
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		v.refuse(f, Malformed, fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err))
		return nil
	}
	if m.ArtifactType != BundleType && !slices.ContainsFunc(m.Layers, isBundle) {
		return nil
	}
	if m.Subject == nil || m.Subject.Digest != v.subject {
		v.refuse(f, OtherSubject, fmt.Errorf("the manifest does not refer to this image"))
		return nil
	}
	if len(m.Layers) != 1 || !isBundle(m.Layers[0]) {
		v.refuse(f, MediaType, fmt.Errorf("%w: the manifest has not one layer with a bundle", fault.ErrInvalid))
		return nil
	}
	most := int64(maxAttestation)
	if v.o.Type == PredicateSign {
		most = maxSignature
	}
	f.Layer = m.Layers[0].Digest
	content, err := v.read(ctx, m.Layers[0], most)
	if err != nil {
		return v.unread(f, err)
	}
	if class, err := v.bundle(&f, content); err != nil {
		v.refuse(f, class, err)
		return nil
	}
	f.Verified = true
	v.findings = append(v.findings, f)
	return nil
}

func isBundle(l v1.Descriptor) bool { return slices.Contains(bundleTypes, l.MediaType) }
