package chartimages_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/mirror/charts/chartimages"
	"github.com/operator-bindery/bindery/mirror/charts/helmtemplate"
)

// find returns the images of a chart that has a manifest.
func find(t *testing.T, manifest, annotations string, o chartimages.Options) (*chartimages.Found, error) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range [][2]string{
		{"c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n" + annotations},
		{"c/templates/m.yaml", manifest},
	} {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := helmtemplate.Parse(t.Context(), b.Bytes(), "c.tgz", helmtemplate.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Render(t.Context(), helmtemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return chartimages.Find(t.Context(), c, m, o)
}

const pod = "kind: Pod\nmetadata: {name: p}\nspec:\n  "

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		manifest    string
		annotations string
		options     chartimages.Options
		images      string // with blanks between
		others      string
		warning     string
	}{
		"containers of a pod, first those that start": {
			manifest: pod + "containers: [{image: 'h.io/a:1'}]\n  initContainers: [{image: 'h.io/b:1'}]",
			images:   "h.io/b:1 h.io/a:1",
		},
		"a template of pods": {
			manifest: "kind: Deployment\nspec: {template: {spec: {containers: [{image: 'h.io/a:1'}]}}}",
			images:   "h.io/a:1",
		},
		"an image in two objects is found once": {
			manifest: pod + "containers: [{image: 'h.io/a:1'}]\n---\n" + pod + "containers: [{image: 'h.io/a:1'}]",
			images:   "h.io/a:1",
		},
		"without a tag": {
			manifest: pod + "containers: [{image: h.io/a}]",
			images:   "h.io/a:latest",
			warning:  `chart c: c/templates/m.yaml: Pod p: {.spec.containers[*].image}: the image "h.io/a" has no tag: latest is taken`,
		},
		"a port is no tag": {
			manifest: pod + "containers: [{image: 'h.io:5000/a'}]",
			images:   "h.io:5000/a:latest",
			warning:  "latest is taken",
		},
		"jobs by the clock, volumes, operands": {
			manifest: "kind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{image: 'h.io/a:1'}], volumes: [{image: {reference: 'h.io/v:1'}}]}}}}}\n---\n" +
				pod + "containers: [{image: 'h.io/b:1', env: [{name: RELATED_IMAGE_X, value: 'h.io/o:1'}, {name: X, value: 'h.io/no:1'}]}]\n  ephemeralContainers: [{image: 'h.io/e:1'}]\n---\n" +
				"kind: ClusterServiceVersion\nspec: {relatedImages: [{image: 'h.io/r:1'}]}\n---\nkind: List\nitems: [{kind: Pod, spec: {containers: [{image: 'h.io/l:1'}]}}]",
			annotations: "annotations:\n  artifacthub.io/images: |\n    - {name: n, image: 'h.io/n:1'}\n",
			images:      "h.io/b:1 h.io/e:1 h.io/o:1 h.io/a:1 h.io/v:1 h.io/r:1 h.io/l:1 h.io/n:1",
		},
		"what oc-mirror does not look for": {
			manifest: "kind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{image: 'h.io/a:1'}]}}}}}\n---\n" +
				pod + "containers: [{image: 'h.io/b:1'}]\n---\nkind: List\nitems: [{kind: Pod, spec: {containers: [{image: 'h.io/b:1'}, {image: 'h.io/l:1'}]}}]",
			options: chartimages.Options{Narrow: true},
			images:  "h.io/b:1",
			others:  "h.io/a:1 h.io/l:1",
		},
		"imagePaths: names with a registry, in text": {
			manifest: pod + "containers: [{image: 'h.io/b:1', args: ['--image h.io/c:1 some:words', 'x', 'localhost/d:1', 'h:5/e']}]",
			options:  chartimages.Options{ImagePaths: []string{"{.spec.containers[*].args[*]}"}},
			images:   "h.io/b:1 h.io/c:1 localhost/d:1 h:5/e:latest",
			warning:  "latest is taken",
		},
		"imagePaths: names without a registry at a key image": {
			manifest: "kind: X\nspec: {image: 'nginx:1'}",
			options:  chartimages.Options{ImagePaths: []string{"{.spec.image}"}},
			images:   "nginx:1",
		},
		"imagePaths without braces": {
			manifest: "kind: X\nspec: {images: ['h.io/a:1', 'h.io/b:1']}",
			options:  chartimages.Options{ImagePaths: []string{".spec.images[*]", "spec.images"}},
			images:   "h.io/a:1 h.io/b:1",
		},
		"imagePaths where nothing is": {
			manifest: pod + "containers: [{image: 'h.io/a:1'}]",
			options:  chartimages.Options{ImagePaths: []string{"{.no.where}"}},
			images:   "h.io/a:1",
			warning:  `chart c: nothing is at "{.no.where}" of imagePaths`,
		},
		"other containers, templates of pods and variables": {
			manifest: "kind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {ephemeralContainers: [{image: 'h.io/e:1'}]}}}}}\n---\n" +
				"kind: PodTemplate\ntemplate: {spec: {containers: [{image: 'h.io/t:1'}], initContainers: [{image: 'h.io/s:1'}]}}\n---\n" +
				"kind: Deployment\nspec: {template: {spec: {initContainers: [{image: 'h.io/i:1', env: [{name: RELATED_IMAGE_X, value: 'h.io/r:1'}]}]}}}",
			images: "h.io/i:1 h.io/r:1 h.io/e:1 h.io/s:1 h.io/t:1",
		},
		"other containers, which oc-mirror does not look for": {
			manifest: "kind: PodTemplate\ntemplate: {spec: {containers: [{image: 'h.io/t:1'}]}}\n---\n" +
				"kind: Deployment\nspec: {template: {spec: {initContainers: [{image: 'h.io/i:1', env: [{name: RELATED_IMAGE_X, value: 'h.io/r:1'}]}]}}}",
			options: chartimages.Options{Narrow: true},
			images:  "h.io/i:1",
			others:  "h.io/r:1 h.io/t:1",
		},
		"an empty image": {
			manifest: pod + "containers: [{image: ''}]",
			warning:  "chart c: c/templates/m.yaml: Pod p: {.spec.containers[*].image}: the image is empty",
		},
		"an image that is a number": {
			manifest: pod + "containers: [{image: 123}]",
			warning:  "chart c: c/templates/m.yaml: Pod p: {.spec.containers[*].image}: the image is no text: 123",
		},
		"an image that is null": {
			manifest: pod + "containers: [{image: }]",
			warning:  "{.spec.containers[*].image}: the image is no text: ",
		},
		"a container without image": {
			manifest: "kind: CronJob\nmetadata: {name: j}\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: x}]}}}}}",
			warning:  `CronJob j: {.spec.jobTemplate.spec.template.spec.containers[*]}: the container "x" has no image`,
		},
		"a container of another kind, which changes one": {
			manifest: "kind: Prometheus\nspec: {containers: [{name: x}]}",
		},
		"an annotation with a chart": {
			manifest:    pod + "containers: [{image: 'h.io/a:1'}]",
			annotations: "annotations:\n  artifacthub.io/images: |\n    - image: oci://h.io/chart:1\n    - image: h.io/y:1\n",
			images:      "h.io/a:1 h.io/y:1",
			warning:     `chart c: Chart.yaml: annotation artifacthub.io/images: "oci://h.io/chart:1" is no image and is left out`,
		},
		"imagePaths with a chart": {
			manifest: pod + "containers: [{image: 'h.io/a:1', args: ['oci://h.io/chart:1', 'h.io/b:1']}]",
			options:  chartimages.Options{ImagePaths: []string{"{.spec.containers[*].args[*]}"}},
			images:   "h.io/a:1 h.io/b:1",
			warning:  `"oci://h.io/chart:1" is no image and is left out`,
		},
		"a further place that has no image": {
			manifest: "kind: ClusterServiceVersion\nspec: {relatedImages: [{image: 'a:b:c'}]}",
			warning:  `"a:b:c" is no image and is left out`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := find(t, c.manifest, c.annotations, c.options)
			if err != nil {
				t.Fatal(err)
			}
			names := func(list []chartimages.Image) string {
				var out []string
				for _, i := range list {
					out = append(out, i.Reference)
				}
				return strings.Join(out, " ")
			}
			if got := names(found.Images); got != c.images {
				t.Errorf("images %q, want %q", got, c.images)
			}
			if got := names(found.Others); got != c.others {
				t.Errorf("others %q, want %q", got, c.others)
			}
			if c.warning == "" != (len(found.Warnings) == 0) ||
				c.warning != "" && !slices.ContainsFunc(found.Warnings, func(w string) bool { return strings.Contains(w, c.warning) }) {
				t.Errorf("warnings %q, want %q", found.Warnings, c.warning)
			}
		})
	}
}

// Warnings and what is looked at are bounded, and the end of the context ends the search.
func TestBounds(t *testing.T) {
	words := func(n string) string {
		return pod + "containers: [{image: 'h.io/a:1', env: [{name: RELATED_IMAGE_X, value: '{{ range until " + n + " }} !{{ . }}{{ end }}'}]}]"
	}
	found, err := find(t, words("50000"), "", chartimages.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(found.Warnings); n != 1001 || found.Warnings[1000] != "chart c: there are 49000 more warnings" {
		t.Errorf("%d warnings, the last is %q", n, found.Warnings[n-1])
	}
	for name, c := range map[string][2]string{
		"words":   {words("200000"), "limit exceeded: chart c has more words at the places of images (limit 100000)"},
		"objects": {"kind: List\nitems: [{{ range until 150000 }}a,{{ end }}]", "limit exceeded: chart c has more objects (limit 100000)"},
	} {
		if _, err := find(t, c[0], "", chartimages.Options{}); err == nil || err.Error() != c[1] {
			t.Errorf("%s: %v, want %s", name, err, c[1])
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("interrupted")
	cancel(cause)
	m := []helmtemplate.Manifest{{Content: pod + "containers: [{image: 'h.io/a:1'}]"}}
	if _, err := chartimages.Find(ctx, &helmtemplate.Chart{}, m, chartimages.Options{}); !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		manifest string
		paths    []string
		want     string
	}{
		"an image of a pod that is none": {
			pod + "containers: [{image: 'h.io/A:1'}]", nil,
			`invalid: chart c: c/templates/m.yaml: Pod p: {.spec.containers[*].image}: "h.io/A:1" is no image: `},
		"an image of a pod in no registry": {
			pod + "containers: [{image: 'oci://h.io/a:1'}]", nil,
			`invalid: chart c: c/templates/m.yaml: Pod p: {.spec.containers[*].image}: "oci://h.io/a:1" is no image: it is in no registry`},
		"a path that is none": {pod, []string{"{.spec[}"}, `invalid: imagePaths of chart c: "{.spec[}": `},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := find(t, c.manifest, "", chartimages.Options{ImagePaths: c.paths})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
