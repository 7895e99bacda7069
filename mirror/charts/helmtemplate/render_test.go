package helmtemplate_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/mirror/charts/helmtemplate"
)

// pack returns the archive of a chart with files.
func pack(t testing.TB, name string, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text := files[file]
		if err := w.WriteHeader(&tar.Header{Name: name + "/" + file, Size: int64(len(text)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// CRDs come before what is installed, in Helm's order, and hooks last; partials and notes are no manifests.
func TestRender(t *testing.T) {
	c, err := helmtemplate.Parse(t.Context(), pack(t, "web", map[string]string{
		"Chart.yaml":              "apiVersion: v2\nname: web\nversion: 1.2.3\n",
		"values.yaml":             "image: registry.example.com/web\n",
		"crds/c.yaml":             "kind: CustomResourceDefinition\nmetadata: {name: c}\n",
		"templates/_help.tpl":     `{{ define "tag" }}{{ .Chart.Version }}{{ end }}`,
		"templates/NOTES.txt":     "kind: None\n",
		"templates/deploy.yaml":   "kind: Deployment\nmetadata: {name: d}\nimage: {{ .Values.image }}:{{ include \"tag\" . }}\n",
		"templates/service.yaml":  "kind: Service\nmetadata: {name: s}\n---\nkind: Secret\n",
		"templates/hook.yaml":     "kind: Job\nmetadata:\n  name: h\n  annotations: {helm.sh/hook: 'pre-install, post-install'}\n",
		"templates/tests/t.yaml":  "kind: Pod\nmetadata:\n  name: t\n  annotations: {helm.sh/hook: test-success}\n",
		"templates/other.yaml":    "kind: Pod\nmetadata:\n  annotations: {helm.sh/hook: sometimes}\n",
		"templates/no/empty.yaml": "{{ if false }}kind: None{{ end }}",
	}), "web.tgz", helmtemplate.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Render(t.Context(), helmtemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range m {
		got = append(got, m.Source+" "+m.Kind+" "+m.Name)
	}
	want := []string{
		"web/crds/c.yaml CustomResourceDefinition c",
		"web/templates/service.yaml Secret ",
		"web/templates/service.yaml Service s",
		"web/templates/deploy.yaml Deployment d",
		"web/templates/hook.yaml Job h",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if text := "kind: Deployment\nmetadata: {name: d}\nimage: registry.example.com/web:1.2.3"; m[3].Content != text {
		t.Errorf("%q", m[3].Content)
	}
	if hooks := []string{"pre-install", "post-install"}; !slices.Equal(m[4].Hooks, hooks) {
		t.Errorf("%q", m[4].Hooks)
	}
	if m, err = c.Render(t.Context(), helmtemplate.Options{Tests: true}); err != nil || len(m) != 6 || !m[4].Test() {
		t.Error(err, m)
	}
}
