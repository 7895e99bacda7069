package bundle_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/bundle"
)

func TestOtherBundles(t *testing.T) {
	plain := map[string]string{"manifests/csv.yaml": "", "metadata/annotations.yaml": "",
		"manifests/two.yaml": service + "---\n" + service}
	tests := []struct {
		name    string
		files   map[string]string
		options bundle.ReadOptions
		want    bundle.MediaType
		objects int
	}{
		{"plain by label", plain, bundle.ReadOptions{Labels: map[string]string{bundle.AnnotationMediaType: "plain+v0"}},
			bundle.PlainV0, 3},
		{"plain by option", plain, bundle.ReadOptions{MediaType: bundle.Plain}, bundle.Plain, 3},
		{"plain by annotation", with(maps.Clone(plain), "metadata/annotations.yaml",
			strings.Replace(soundAnnotations, "registry+v1", "plain", 1)), bundle.ReadOptions{}, bundle.Plain, 3},
		{"a chart", map[string]string{"manifests/csv.yaml": "", "metadata/annotations.yaml": "",
			"Chart.yaml": "name: a"}, bundle.ReadOptions{}, bundle.Helm, 0},
		{"a chart in manifests", map[string]string{"manifests/csv.yaml": "", "metadata/annotations.yaml": "",
			"manifests/Chart.yaml": "name: a"}, bundle.ReadOptions{}, bundle.Helm, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := read(t, sound(test.files), test.options)
			if b.MediaType != test.want || len(b.Objects) != test.objects {
				t.Errorf("media type %q, %d objects", b.MediaType, len(b.Objects))
			}
			if len(b.Problems) > 0 {
				t.Errorf("problems %v", b.Problems)
			}
			if _, err := b.Blob("a"); !errors.Is(err, bundle.ErrInvalid) || !strings.Contains(err.Error(),
				"bundle missing csv") {
				t.Errorf("a blob was made of it: %v", err)
			}
		})
	}
	t.Run("a ClusterServiceVersion in what is said to be plain", func(t *testing.T) {
		for _, kind := range []string{"plain", "helm"} {
			b := read(t,
				sound(map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations, "registry+v1",
					kind, 1)}), bundle.ReadOptions{})
			if made := blob(t, b, ""); made.Name != "foo.v1.2.3" || len(made.Properties) != 3 {
				t.Errorf("%s: blob %q with %d properties", kind, made.Name, len(made.Properties))
			}
		}
	})
}

func TestStrictReading(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a directory", map[string]string{"manifests/d/x.yaml": service}, "a directory within the manifests"},
		{"a file that is no object", map[string]string{"manifests/x.yaml": "a: b"}, "it has no kind"},
		{"a file that is no YAML", map[string]string{"manifests/x.yaml": "a: b: c"}, "manifests/x.yaml:1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			problems := read(t, sound(test.files), bundle.ReadOptions{}).StrictProblems()
			if len(problems) != 1 || problems[0].Severity != bundle.SeverityError ||
				!strings.Contains(problems[0].String(), test.want) {
				t.Errorf("problems %v, want %q", problems, test.want)
			}
		})
	}
	for name, files := range map[string]map[string]string{
		"several documents in a file": {"manifests/x.yaml": service + "---\n" + service},
		"other metadata":              {"metadata/x.yaml": "a: b: c"},
	} {
		if problems := read(t, sound(files), bundle.ReadOptions{}).StrictProblems(); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestAnnotationsWinOverLabels(t *testing.T) {
	labels := map[string]string{bundle.AnnotationPackage: "other", bundle.AnnotationDefaultChannel: "x", "vendor": "me"}
	files := map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations,
		"  operators.operatorframework.io.bundle.channel.default.v1: stable\n", "", 1)}
	b := read(t, sound(files), bundle.ReadOptions{Labels: labels})
	if b.Package != "foo" || b.DefaultChannel != "x" || b.Annotations["vendor"] != "me" {
		t.Errorf("package %q, default channel %q, annotations %v", b.Package, b.DefaultChannel, b.Annotations)
	}
	if labels[bundle.AnnotationPackage] != "other" {
		t.Error("the caller's labels were changed")
	}
}

func TestPlacesAreThoseOfTheAnnotations(t *testing.T) {
	files := fstest.MapFS{}
	for name, f := range sound(map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations,
		"manifests/", "bundle/objects/", 1)}) {
		name = strings.Replace(name, "manifests/", "bundle/objects/", 1)
		files[strings.Replace(name, "metadata/", "bundle/about/", 1)] = f
	}
	labels := map[string]string{bundle.AnnotationMetadata: "bundle/about/",
		bundle.AnnotationManifests: "bundle/objects/"}
	b := read(t, files, bundle.ReadOptions{Labels: labels})
	if b.ManifestsDir != "bundle/objects" || b.AnnotationsFile != "bundle/about/annotations.yaml" ||
		len(b.Objects) != 2 {
		t.Errorf("read from %q, %q", b.ManifestsDir, b.AnnotationsFile)
	}
	if problems := b.StrictProblems(); len(problems) != 2 {
		t.Errorf("problems of the strict reader: %v", problems)
	}
	if got, want := bundle.Paths(labels), []string{"manifests", "metadata", "bundle/objects",
		"bundle/about"}; !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
	hostile := map[string]string{bundle.AnnotationMetadata: "../x", bundle.AnnotationManifests: "/",
		bundle.AnnotationMediaType: "helm"}
	if got, want := bundle.Paths(hostile), []string{"manifests", "metadata", "Chart.yaml"}; !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
}
