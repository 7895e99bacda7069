package build

import (
	"encoding/json"
	"maps"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// TestBaseAnnotations checks that the manifest of an image names its base, as the image specification says: by the
// reference that registries know and the digest of the index or manifest that it stands for.
func TestBaseAnnotations(t *testing.T) {
	r := testregistry.New(t)
	one := testregistry.Image{Platform: amd64, Layers: []map[string]string{{"a": "b"}}}
	top := r.AddIndex(t, "acme/base", "v1", nil, []testregistry.Image{one, {Platform: v1.Platform{OS: "linux",
		Architecture: "arm64"}, Layers: one.Layers}})
	r.AddImage(t, "acme/base", "one", one)
	skip := true
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read,
		Options: registries.Options{Temp: t.TempDir(), Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	layout := layoutOf(t, baseImage{config: v1.ImageConfig{}, files: map[string]string{"a": "b"}, platforms: []v1.Platform{
		amd64}})
	for _, c := range []struct {
		rule, base string
		o          Options
		want       map[string]string
	}{
		{"an index", r.Host() + "/acme/base:v1", Options{}, map[string]string{
			v1.AnnotationBaseImageName: r.Host() + "/acme/base:v1", v1.AnnotationBaseImageDigest: top.String()}},
		{"by digest", r.Host() + "/acme/base@" + top.String(), Options{}, map[string]string{
			v1.AnnotationBaseImageName:   r.Host() + "/acme/base@" + top.String(),
			v1.AnnotationBaseImageDigest: top.String()}},
		{"no registry", layout, Options{}, map[string]string{v1.AnnotationBaseImageDigest: ""}},
		{"overridden", r.Host() + "/acme/base:v1", Options{Annotations: map[string]string{
			v1.AnnotationBaseImageName: "example.com/base:v1"}}, map[string]string{
			v1.AnnotationBaseImageName: "example.com/base:v1", v1.AnnotationBaseImageDigest: top.String()}},
		{"not that of the source", r.Host() + "/acme/base:v1", Options{Source: &images.Description{Variants: []images.Variant{
			{Platform: amd64, Annotations: map[string]string{v1.AnnotationBaseImageName: "example.com/other:v1",
				"kept": "yes"}}}}}, map[string]string{"kept": "yes",
			v1.AnnotationBaseImageName: r.Host() + "/acme/base:v1", v1.AnnotationBaseImageDigest: top.String()}},
		{"docker's format has none", r.Host() + "/acme/base:v1", Options{Format: FormatDocker}, nil},
		{"no base", "", Options{}, nil},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if c.base != "" {
				var err error
				if c.o.Base, err = NamedBase(client, c.base); err != nil {
					t.Fatal(err)
				}
			}
			img := catalog(t, CatalogInput{FS: packageFS("foo")}, c.o)
			var m v1.Manifest
			if err := json.Unmarshal(img.manifest, &m); err != nil {
				t.Fatal(err)
			}
			if c.rule == "no registry" {
				c.want[v1.AnnotationBaseImageDigest] = m.Annotations[v1.AnnotationBaseImageDigest]
			}
			if !maps.Equal(m.Annotations, c.want) || c.rule == "no registry" && len(m.Annotations) == 0 {
				t.Errorf("annotations %q, want %q", m.Annotations, c.want)
			}
		})
	}
}
