package inventory

import (
	"context"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/supply/sbom"
)

func (x *examiner) bundle(ctx context.Context, i images.SurveyedImage, e *examined) error {
	b, err := render.Options{ImageLimits: x.o.Limits, TempDir: x.o.Temp}.ReadBundle(ctx, i.Image)
	if err != nil {
		return err
	}
	e.operator = &sbom.Operator{Name: b.Package, Package: b.Package}
	if b.CSV == nil {
		return nil
	}
	e.operator.Name, e.operator.Version = b.CSV.Name, b.CSV.Version
	for _, r := range b.CSV.RelatedImages {
		if r.Image != "" {
			e.operator.Related = append(e.operator.Related, imageReference(r.Name, r.Image))
		}
	}
	for _, image := range b.CSV.Images {
		e.operator.Related = append(e.operator.Related, imageReference("", image))
	}
	return nil
}

// imageReference parses a reference. A name without a registry is of docker.io, as for every container engine.
func imageReference(role, text string) sbom.Reference {
	r := sbom.Reference{Role: role, Text: text}
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return r
	}
	r.Name = named.Name()
	if tagged, ok := named.(reference.Tagged); ok {
		r.Tag = tagged.Tag()
	}
	if canonical, ok := named.(reference.Canonical); ok {
		r.Digest = canonical.Digest()
	}
	return r
}
