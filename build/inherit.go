package build

import (
	"maps"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// passingAnnotations are prefixes of annotations about one manifest: its build time and source, and notes of tools.
// They are not inherited.
var passingAnnotations = [...]string{
	v1.AnnotationBaseImageDigest, v1.AnnotationBaseImageName, v1.AnnotationCreated, v1.AnnotationRefName,
	"com.docker.", "vnd.docker.", "containerd.io/", "io.containerd.", "io.buildah.", "io.podman.",
	"io.github.containers.", "dev.cosign", "dev.sigstore.",
}

// inheritable returns the annotations that stay valid in an image built from another.
func inheritable(all map[string]string) map[string]string {
	out := withLabels(all, nil)
	maps.DeleteFunc(out, func(key, _ string) bool {
		return slices.ContainsFunc(passingAnnotations[:],
			func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return out
}

// inherited returns the labels and annotations of [Options.Source] for a platform: those of the image for the platform,
// else for its architecture in another variant, else of the first image.
func (o *Options) inherited(p v1.Platform) (labels, annotations map[string]string) {
	if o.Source == nil || len(o.Source.Variants) == 0 {
		return nil, nil
	}
	v, best := o.Source.Variants[0], 0
	for _, other := range o.Source.Variants {
		fits := 0
		if other.Platform.OS == p.OS && other.Platform.Architecture == p.Architecture {
			fits = 1
			if other.Platform.Variant == p.Variant {
				fits = 2
			}
		}
		if fits > best {
			v, best = other, fits
		}
	}
	return v.Config.Config.Labels, inheritable(v.Annotations)
}

// manifestAnnotations returns those of the manifest for a platform.
func (o *Options) manifestAnnotations(p v1.Platform, b *base) map[string]string {
	_, annotations := o.inherited(p)
	return o.annotations(withLabels(annotations, b.annotations()))
}

// annotations returns those of the image specification that name the base of an image: the reference by which a
// registry has it, and the digest of its index or manifest, whose platforms all count. A base that is in no registry
// has a digest only: a path of this machine would say nothing elsewhere, and differ from build to build.
func (b *base) annotations() map[string]string {
	if b == nil {
		return nil
	}
	out := map[string]string{v1.AnnotationBaseImageDigest: b.top.String()}
	if b.name != "" {
		out[v1.AnnotationBaseImageName] = b.name
	}
	return out
}

// indexAnnotations returns those of the index.
func (o *Options) indexAnnotations() map[string]string {
	if o.Source == nil {
		return o.Annotations
	}
	return o.annotations(inheritable(o.Source.Annotations))
}

// annotations returns all annotations of a manifest or an index: Annotations override inherited ones. The docker format
// has none.
func (o *Options) annotations(inherited map[string]string) map[string]string {
	if o.Format == FormatDocker || len(inherited) == 0 {
		return o.Annotations
	}
	all := maps.Clone(inherited)
	maps.Copy(all, o.Annotations)
	return all
}
