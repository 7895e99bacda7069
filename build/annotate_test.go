package build

import (
	"encoding/json"
	"maps"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
)

// Labels and annotations are inherited per platform, are overridden by the options, and cannot contradict the image's
// content.
func TestInherited(t *testing.T) {
	platforms := []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
	o := Options{
		severalPlatforms: platforms, Labels: map[string]string{"both": "asked"},
		Annotations: map[string]string{"note": "asked"},
		Source: &images.Description{Annotations: map[string]string{"index": "kept", "note": "kept",
			v1.AnnotationCreated: "once"}},
	}
	for _, p := range platforms {
		v := images.Variant{Platform: p,
			Annotations: map[string]string{"arch": p.Architecture, "note": "kept", "io.buildah.version": "1"}}
		v.Config.Config.Labels = map[string]string{"arch": p.Architecture, "both": "kept", DatabaseLabel: "/x.db",
			ConfigsLabel: "/elsewhere"}
		o.Source.Variants = append(o.Source.Variants, v)
	}
	for _, format := range []Format{FormatOCI, FormatDocker} {
		o := o
		o.Format = format
		if format == FormatDocker {
			o.Annotations = nil
		}
		img := catalog(t, CatalogInput{FS: sampleFS()}, o)
		for i, p := range platforms {
			var config v1.Image
			if err := json.Unmarshal(img.configs[img.Platforms[i].Config], &config); err != nil {
				t.Fatal(err)
			}
			if want := map[string]string{"arch": p.Architecture, "both": "asked",
				ConfigsLabel: "/configs"}; !maps.Equal(config.Config.Labels, want) {
				t.Errorf("%s, %s: labels %v", format, p.Architecture, config.Config.Labels)
			}
			var m v1.Manifest
			if err := json.Unmarshal(img.manifests[img.Platforms[i].Digest], &m); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"arch": p.Architecture, "note": "asked"}
			if format == FormatDocker {
				want = nil
			}
			if !maps.Equal(m.Annotations, want) {
				t.Errorf("%s, %s: annotations %v", format, p.Architecture, m.Annotations)
			}
		}
		var index v1.Index
		if err := json.Unmarshal(img.manifest, &index); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"index": "kept", "note": "asked"}
		if format == FormatDocker {
			want = nil
		}
		if !maps.Equal(index.Annotations, want) {
			t.Errorf("%s: annotations of the index %v", format, index.Annotations)
		}
	}
	if o.Annotations["index"] != "" {
		t.Error("the options have changed")
	}
}
