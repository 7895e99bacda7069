//go:build hostile

package hostile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Names of images, packages and objects are only text in the configurations for clusters and podman.
func TestMirrorsOfHostileNames(t *testing.T) {
	t.Parallel()
	for i, image := range []string{
		"example.com/a\nmirrors: [evil.example.com]", "example.com/a: {b: c}", "example.com/a # x",
		"example.com/a\"\nlocation = \"evil.example.com\"", "'example.com/a'",
		"example.com/a=evil.example.com/b", "*x", "&x", "!!binary aGk=", "---", "example.com/\u2028a",
		"example.com/\x1b[31m", "{{.}}", "$(touch evil)", "`touch evil`", "-a", "../../etc/passwd",
		"example.com/" + strings.Repeat("a/", 50_000) + "a", "null", "~", "1e3", "user:" + secret + "@example.com/a:v1",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			text, err := json.Marshal(image)
			check(t, err)
			b.write("cat/c.json", `{"schema":"olm.package","name":"foo","defaultChannel":"a"}
{"schema":"olm.channel","package":"foo","name":"a","entries":[{"name":"foo.v1.0.0"}]}
{"schema":"olm.bundle","package":"foo","name":"foo.v1.0.0","image":"example.com/foo:v1","properties":[{"type":"olm.package","value":{"packageName":"foo","version":"1.0.0"}}],"relatedImages":[{"name":`+string(text)+`,"image":`+string(text)+`}]}
`)
			before := b.snapshot()
			for _, format := range []string{"mapping", "json", "idms", "itms", "icsp", "registries-conf"} {
				o := b.run("registry", "mirror", "cat", "--to", "mirror.example.com/olm", "-o", format)
				b.inBudget(format, o)
				b.unchanged(format, before)
				if strings.ContainsAny(o.stdout+o.stderr, "\x1b\u2028") || strings.Contains(o.stdout+o.stderr,
					secret) || len(o.stderr) > 20_000 {
					t.Errorf("%s: %.500q %.500q", format, o.stdout, o.stderr)
				}
				if o.status != 0 {
					if o.stdout != "" {
						t.Errorf("%s: status %d, and %.500q", format, o.status, o.stdout)
					}
					continue
				}
				if strings.Contains(format, "m") && format != "mapping" {
					checkMirrorObjects(t, format, o.stdout)
				}
				for line := range strings.Lines(o.stdout) {
					if format == "mapping" && strings.Count(line, "=") != 1 {
						t.Errorf("%s: %.200q", format, line)
					}
				}
			}
			if o := b.run("registry", "mirror", "cat", "--to", "mirror.example.com", "-o", "idms", "--name",
				image); o.status == 0 {
				checkMirrorObjects(t, "name", o.stdout)
			}
		})
	}
}

// checkMirrorObjects requires that a YAML stream has exactly the fields of image mirror sets.
func checkMirrorObjects(t *testing.T, format, stream string) {
	t.Helper()
	allowed := map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "spec": true}
	for doc := range strings.SplitSeq(stream, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Errorf("%s: %v: %.500q", format, err, doc)
			continue
		}
		for key := range object {
			if !allowed[key] {
				t.Errorf("%s: a field %q", format, key)
			}
		}
		spec, _ := object["spec"].(map[string]any)
		for key, list := range spec {
			entries, _ := list.([]any)
			for _, e := range entries {
				entry, ok := e.(map[string]any)
				mirrors, _ := entry["mirrors"].([]any)
				if !ok || len(mirrors) != 1 || reflect.ValueOf(entry).Len() > 3 ||
					!strings.HasPrefix(fmt.Sprint(mirrors[0]), "mirror.example.com") {
					t.Errorf("%s: %s: %v", format, key, e)
				}
			}
		}
	}
}
