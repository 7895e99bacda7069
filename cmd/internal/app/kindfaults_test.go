package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// goWords are what encoding/json, the YAML libraries and the program's own types are called in messages.
var goWords = regexp.MustCompile(
	`Go (struct|value)|cannot unmarshal|json: |unmarshal errors|map\[string\]|interface ?\{|\[\]string|\b(json|property|declcfg|imageset|compose)[.A-Z]\w*\.\w+ of|of type [a-z]+\.[A-Z]`)

// documents are files that people write, with the commands that read them; FILE is the file.
var documents = map[string]struct {
	text     string
	commands []string
}{
	"catalog.yaml": {`schema: olm.package
name: a
defaultChannel: stable
description: text
icon: {base64data: aGVsbG8=, mediatype: image/png}
properties: [{type: x, value: 1}]
---
schema: olm.channel
package: a
name: stable
entries:
- name: a.v2
  replaces: a.v1
  skips: [a.v0]
  skipRange: <2.0.0
- name: a.v1
---
schema: olm.bundle
package: a
name: a.v1
image: example.com/a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
relatedImages:
- {name: "", image: "example.com/b:v1"}
properties:
- type: olm.package
  value: {packageName: a, version: 1.0.0}
- type: olm.gvk
  value: {group: g, version: v1, kind: K}
- type: olm.csv.metadata
  value: {displayName: A, keywords: [x], installModes: [{type: AllNamespaces, supported: true}], annotations: {a: b}, crdDescriptions: {owned: [{name: a, version: v1, kind: K}]}}
---
schema: olm.bundle
package: a
name: a.v2
image: example.com/a@sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
properties:
- type: olm.package
  value: {packageName: a, version: 2.0.0}
---
schema: olm.deprecations
package: a
entries:
- reference: {schema: olm.bundle, name: a.v1}
  message: old
`, []string{"validate DIR", "validate DIR -o json", "render DIR", "check DIR", "list bundles DIR", "diff DIR ../valid"}},
	"semver.yaml": {`schema: olm.semver
generateMajorChannels: true
generateMinorChannels: false
defaultChannelTypePreference: minor
stable:
  bundles:
  - image: example.com/a:v1
`, []string{"template render semver FILE"}},
	"basic.yaml": {`schema: olm.template.basic
entries:
- {schema: olm.package, name: a, defaultChannel: c}
- {schema: olm.channel, package: a, name: c, entries: [{name: b, skips: [x]}]}
`, []string{"template render basic FILE"}},
	"compose.yaml": {`name: n
repo: example.com/c
tag: v1
references:
- name: a
  image: example.com/a:v1
`, []string{"build compose FILE --plan"}},
	"imageset.yaml": {`kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
archiveSize: 4
mirror:
  operators:
  - catalog: example.com/c:v1
    full: true
    targetCatalog: a/b
    packages: [{name: x, minVersion: 1.0.0, channels: [{name: c, maxVersion: 2.0.0}]}]
  additionalImages: [{name: example.com/i:v1}]
  blockedImages: [{name: x}]
  platform: {graph: true, channels: [{name: stable, type: ocp}]}
`, []string{"mirror plan -c FILE"}},
	"delete.yaml": {`kind: DeleteImageList
apiVersion: mirror.openshift.io/v2alpha1
items:
- imageName: docker://example.com/a:v1
  imageReference: docker://127.0.0.1:1/b:v1
  type: operatorBundle
`, []string{"mirror delete --list FILE --use-http --dry-run docker://127.0.0.1:1"}},
	"waivers.yaml": {`waivers:
- rule: catalog.graph
  reason: text
`, []string{"check ../valid --waivers FILE"}},
	"settings.yaml": {`watchNamespace: a
deploymentConfig: {nodeSelector: {a: b}, env: [{name: a, value: b}], tolerations: [{key: a}]}
`, []string{"bundle manifests ../bundle --config FILE"}},
}

// each calls f with a copy of a value for each place in it, at which another kind of value is.
func each(v any, path []any, f func(path []any)) {
	if len(path) > 0 {
		f(path)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			each(v[name], append(slices.Clip(path), name), f)
		}
	case []any:
		for i := range v {
			each(v[i], append(slices.Clip(path), i), f)
		}
	}
}

// replaced returns a value with another one at a path.
func replaced(v any, path []any, by any) any {
	if len(path) == 0 {
		return by
	}
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		out[path[0].(string)] = replaced(v[path[0].(string)], path[1:], by)
		return out
	case []any:
		out := slices.Clone(v)
		out[path[0].(int)] = replaced(v[path[0].(int)], path[1:], by)
		return out
	}
	return v
}

// Whatever kind of value stands anywhere in a file that people write, no message names a type of Go, and the field and
// its line are in the error.
func TestValuesOfAnotherKind(t *testing.T) {
	for name, d := range documents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write := func(path, text string) {
				t.Helper()
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("valid/catalog.yaml", documents["catalog.yaml"].text)
			if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(d.text, "---\n")
			refused, runs := 0, 0
			for at, part := range parts {
				var v any
				if err := yaml.Unmarshal([]byte(part), &v); err != nil {
					t.Fatal(err)
				}
				each(v, nil, func(path []any) {
					// Two of the kinds in turn, so that all places have some of them and all fields all.
					for range 2 {
						runs++
						by := []any{7, "text", []any{1}, map[string]any{"x": 1}, true}[runs%5]
						text, err := yaml.Marshal(replaced(v, path, by))
						if err != nil {
							t.Fatal(err)
						}
						changed := slices.Clone(parts)
						changed[at] = string(text)
						write("in/"+name, strings.Join(changed, "---\n"))
						command := d.commands[runs%len(d.commands)]
						args := strings.Fields(strings.NewReplacer("FILE", name, "DIR", ".").Replace(command))
						got := clitest.RunProgram(t, filepath.Join(dir, "in"), "bindery", args...)
						about := fmt.Sprintf("%s: %v is %v", command, path, by)
						if found := goWords.FindString(got.Stderr + got.Stdout); found != "" {
							t.Errorf("%s: %q in %s%s", about, found, got.Stderr, got.Stdout)
						}
						if got.Status != 0 {
							refused++
						}
						line := regexp.MustCompile(name + `:\d+(:\d+)?\b|"line": \d`)
						if strings.Contains(got.Stderr+got.Stdout, ", expected ") && !line.MatchString(got.Stderr+got.Stdout) {
							t.Errorf("%s: no line in %s%s", about, got.Stderr, got.Stdout)
						}
					}
				})
			}
			if refused == 0 {
				t.Error("nothing was refused")
			}
		})
	}
}

// All values of other kinds are found in one run, each once and at its place; opm says what it says.
func TestKindsInACatalog(t *testing.T) {
	dir := t.TempDir()
	text := strings.NewReplacer("defaultChannel: stable", "defaultChannel: 4", "name: stable", "name: 1.10",
		"skips: [a.v0]", "skips: a.v0", "version: 1.0.0", "version: 1.0", "message: old", "message: [old]").
		Replace(documents["catalog.yaml"].text)
	if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := clitest.RunProgram(t, dir, "bindery", "validate", ".")
	for _, want := range []string{
		`defaultChannel is a number, expected a string (write it in quotes: "4") (the upgrade graph of package "a" was not checked) [catalog.yaml:3:17]`,
		`name is a number, expected a string (write it in quotes: "1.10")`, `[catalog.yaml:10:7]`,
		`properties[0].value.version is a number, expected a string (write it in quotes: "1.0")`,
		`olm.deprecations: entries[0].message is a list, expected a string`,
	} {
		if strings.Count(got.Stderr, want) != 1 {
			t.Errorf("not once: %s\nin %s", want, got.Stderr)
		}
	}
	var answer struct{ Problems []struct{ Line, Column int } }
	got = clitest.RunProgram(t, dir, "bindery", "validate", ".", "-o", "json")
	if err := json.Unmarshal([]byte(got.Stdout), &answer); err != nil || len(answer.Problems) != 4 {
		t.Errorf("%v: %s", err, got.Stdout)
	}
	for _, p := range answer.Problems {
		if p.Line == 0 || p.Column == 0 {
			t.Errorf("%+v", p)
		}
	}
	got = clitest.RunProgram(t, dir, "opm", "validate", ".")
	if !strings.Contains(got.Stderr, `cannot unmarshal number into Go struct field`) {
		t.Errorf("opm: %s", got.Stderr)
	}
}

// What cannot be read hides nothing about the other packages, and nothing is said of what may be in it.
func TestValidateGoesOnAfterSyntaxErrors(t *testing.T) {
	dir := t.TempDir()
	channel := func(pkg, entries string) string {
		return fmt.Sprintf("---\nschema: olm.channel\npackage: %s\nname: c\nentries: %s\n", pkg, entries)
	}
	bundle := func(pkg, version string) string {
		return fmt.Sprintf("---\nschema: olm.bundle\npackage: %s\nname: %s.v1\nimage: example.com/%s:v1\nproperties:\n"+
			"- type: olm.package\n  value: {packageName: %s, version: %s}\n", pkg, pkg, pkg, pkg, version)
	}
	head := func(pkg string) string {
		return fmt.Sprintf("schema: olm.package\nname: %s\ndefaultChannel: c\n", pkg)
	}
	for file, text := range map[string]string{
		"a.yaml":       head("a") + channel("a", "[") + bundle("a", "one"),
		"b.yaml":       head("b") + channel("b", "[{name: b.v1}, {name: b.v2}]") + bundle("b", "two"),
		"c/head.yaml":  head("c") + bundle("c", "1.0.0"),
		"c/rest.yaml":  "}{",
		"d/d.json":     `{"schema":"olm.package","name":"d","defaultChannel":"c"}{"schema":"olm.channel",`,
		"e.yaml":       head("e") + channel("e", "[{name: e.v1}]") + bundle("e", "1.0.0"),
		"f/broken.yml": "schema: olm.package\nname: f\ndefaultChannel: [\n" + channel("f", "[{name: f.v1}]") + bundle("f", "1.0.0"),
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"validate", "check"} {
		got := clitest.RunProgram(t, dir, "bindery", command, ".")
		out := got.Stderr + got.Stdout
		if got.Status != 1 && got.Status != 3 {
			t.Errorf("exit status %d", got.Status)
		}
		for _, want := range []string{"a.yaml:", `of package "a" was not checked`, `version "one"`, `version "two"`, "[b.v2]",
			"c/rest.yaml", "d/d.json", `of package "f" was not checked`} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %s in %s", command, want, out)
			}
		}
		for _, not := range []string{`package "c" must`, `invalid package "a"`, `unknown package "f"`, `invalid package "c"`,
			`invalid package "d"`, `invalid package "e"`, `bundle "c.v1" not found in any`} {
			if strings.Contains(out, not) {
				t.Errorf("%s: %s in %s", command, not, out)
			}
		}
	}
}
