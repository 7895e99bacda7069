package signature

import (
	"context"
	"fmt"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/fault"
)

// bundles verifies the referrers that are Sigstore bundles. What a list says of a referrer is not used but for its
// digest: some registries list another artifactType, and no annotations.
func (v *verifier) bundles(ctx context.Context) error {
	listed, problems, err := v.left.list(ctx, v.r, v.subject)
	if err != nil {
		return fmt.Errorf("looking for signatures of %s: %w", v.subject, err)
	}
	for _, p := range problems {
		if p.Digest == v.subject {
			continue // an image that lists itself
		}
		v.refuse(Finding{Form: string(formBundle), Manifest: p.Digest}, Corrupt, p.Err)
	}
	for _, r := range listed {
		if r.ArtifactType != BundleType && !slices.ContainsFunc(r.Layers, isBundle) {
			continue
		}
		if err := v.referrer(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// referrer verifies one bundle of the subject.
func (v *verifier) referrer(ctx context.Context, r referrers.Referrer) error {
	f := Finding{Form: string(formBundle), Manifest: r.Digest}
	if len(r.Layers) != 1 || !isBundle(r.Layers[0]) {
		v.refuse(f, MediaType, fmt.Errorf("%w: the manifest has not one layer with a bundle", fault.ErrInvalid))
		return nil
	}
	most := int64(maxAttestation)
	if v.o.Type == PredicateSign {
		most = maxSignature
	}
	f.Layer = r.Layers[0].Digest
	content, err := v.read(ctx, r.Layers[0], most)
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
