package bundlecheck

import (
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

func TestPlain(t *testing.T) {
	annotations := "annotations:\n"
	for _, key := range []string{"mediatype.v1: plain+v0", "manifests.v1: manifests/", "metadata.v1: metadata/",
		"package.v1: p", "channels.v1: a", "channel.default.v1: a"} {
		annotations += "  operators.operatorframework.io.bundle." + key + "\n"
	}
	const objects = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n---\napiVersion: apps/v1\nkind: " +
		"Deployment\nmetadata:\n  name: a\n  namespace: a\n"
	for _, c := range []struct{ name, text, want string }{
		{"several objects in a file", objects, ""},
		{"twice the same",
			objects + "---\napiVersion: apps/v1beta1\nkind: Deployment\nmetadata:\n  name: a\n  namespace: a\n",
			`error object-twice manifests/a.yaml:15: metadata.name: Deployment "a" is in manifests/a.yaml:6 too`},
		{"the same name elsewhere",
			objects + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n  namespace: b\n", ""},
		{"no kind", objects + "---\napiVersion: v1\nmetadata:\n  name: b\n",
			"error syntax manifests/a.yaml:12: not a Kubernetes object: it has no kind"},
		{"no name", objects + "---\napiVersion: v1\nkind: Secret\n",
			"document 3 has no metadata.name and is no Kubernetes object"},
		{"nothing", "# nothing\n", "no bundle objects found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{notesFile: {Data: []byte(annotations)}, "manifests/a.yaml": {Data: []byte(c.text)}}
			report := check(t, fsys, Options{Plain: true})
			text := lines(report.Problems)
			if report.Failed() != (c.want != "") || !strings.Contains(text, c.want) {
				t.Errorf("got\n%s\nwant %s", text, c.want)
			}
		})
	}
	t.Run("a directory", func(t *testing.T) {
		fsys := fstest.MapFS{notesFile: {Data: []byte(annotations)}, "manifests/a.yaml": {Data: []byte(objects)},
			"manifests/b/c.yaml": {Data: []byte(objects)}}
		if text := lines(check(t, fsys, Options{Plain: true}).Problems); !strings.Contains(text,
			"error sub-directory manifests/b: ") {
			t.Errorf("got\n%s", text)
		}
	})
	t.Run("of another media type", func(t *testing.T) {
		if text := lines(check(t, etcd(t), Options{Plain: true}).Problems); !strings.Contains(text,
			`to have value "plain+v0" instead of "registry+v1"`) {
			t.Errorf("got\n%s", text)
		}
	})
}

func TestHelmIsRecognised(t *testing.T) {
	fsys := etcd(t)
	for name := range fsys {
		if path.Dir(name) == "manifests" {
			delete(fsys, name)
		}
	}
	write(fsys, "manifests/chart/Chart.yaml", "apiVersion: v2\nname: a\n")
	write(fsys, "manifests/chart/templates/a.yaml", "{{ .Values }}")
	text := lines(check(t, fsys, Options{}).Problems)
	for _, want := range []string{`to have value "helm" instead of "registry+v1"`,
		"error chart manifests/chart/Chart.yaml: the chart has no version"} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwithout %s", text, want)
		}
	}
}
