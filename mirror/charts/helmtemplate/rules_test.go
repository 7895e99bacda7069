package helmtemplate_test

import (
	"path"
	"testing"

	"github.com/operator-bindery/bindery/mirror/charts/helmtemplate"
)

// show prints all that a chart sees.
const show = "kind: Show\nchart: {{ toJson .Chart }}\nvalues: {{ toJson .Values }}\nsubcharts: {{ keys .Subcharts | sortAlpha | toJson }}\ntemplate: {{ toJson .Template }}\nfiles: {{ range $name, $_ := .Files }}{{ $name }},{{ end }}\n"

// sub returns the files of a subchart with values.
func sub(files map[string]string, at, meta, values string) {
	files[path.Join(at, "Chart.yaml")] = "apiVersion: v2\n" + meta
	files[path.Join(at, "values.yaml")] = values
	files[path.Join(at, "templates/show.yaml")] = show
}

// charts are charts that each have a rule about subcharts, values or manifests.
func charts(t *testing.T) map[string][]byte {
	all := map[string][]byte{}
	add := func(name, meta, values string, more func(files map[string]string)) {
		files := map[string]string{}
		sub(files, ".", "name: top\nversion: 1.0.0\n"+meta, values)
		if more != nil {
			more(files)
		}
		all[name] = pack(t, "top", files)
	}
	ab := func(files map[string]string) {
		sub(files, "charts/a", "name: a\nversion: 1.2.0\n", "x: 1\ntable: {k: 1, l: 2}\nexports: {data: {from: a, n: 1}}\nglobal: {g: a, t: {u: 1}}\n")
		sub(files, "charts/b", "name: b\nversion: 0.1.0-rc.1\ndependencies: [{name: c, version: '*', condition: 'c.on,global.c'}]\n", "y: 2\nc: {on: true, z: 3}\n")
		sub(files, "charts/b/charts/c", "name: c\nversion: 3.0.0\n", "z: 1\nnested: {deep: {er: 1}}\n")
	}
	add("subcharts without dependencies in Chart.yaml", "", "a: {x: 5, table: {l: null}}\nglobal: {g: top, c: false}\n", ab)
	add("condition off", "dependencies: [{name: a, version: 1.x, condition: a.enabled}]\n", "a: {enabled: false}\n", ab)
	add("condition on", "dependencies: [{name: a, version: '>=1', condition: a.enabled}]\n", "a: {enabled: true}\n", ab)
	add("second of two conditions", "dependencies: [{name: a, version: '1', condition: 'no.such,a.enabled'}]\n", "a: {enabled: false}\n", ab)
	add("condition that is text", "dependencies: [{name: a, version: '1', condition: a.enabled}]\n", "a: {enabled: 'no'}\n", ab)
	add("condition that is a table", "dependencies: [{name: a, version: '1', condition: a.table}]\n", "a: {table: {}}\n", ab)
	add("condition of the subchart's values", "dependencies: [{name: b, version: '>0-0', condition: b.c.on}]\n", "", ab)
	add("tags off", "dependencies: [{name: a, version: '1', tags: [t, u]}]\n", "tags: {t: false}\n", ab)
	add("one of two tags on", "dependencies: [{name: a, version: '1', tags: [t, u]}]\n", "tags: {t: false, u: true}\n", ab)
	add("tag that is text", "dependencies: [{name: a, version: '1', tags: [t]}]\n", "tags: {t: 'false'}\n", ab)
	add("condition before tag", "dependencies: [{name: a, version: '1', tags: [t], condition: a.on}]\n", "tags: {t: false}\na: {on: true}\n", ab)
	add("tags are no table", "dependencies: [{name: a, version: '1', tags: [t]}]\n", "tags: 1\n", ab)
	add("alias", "dependencies: [{name: a, version: '1', alias: other, condition: other.on}]\n", "other: {x: 7, on: true}\na: {x: 8}\n", ab)
	add("two aliases of one chart", "dependencies: [{name: a, version: '1', alias: one}, {name: a, version: '1', alias: two}]\n", "one: {x: 7}\ntwo: {table: null}\n", ab)
	add("alias and name", "dependencies: [{name: a, version: '1'}, {name: a, version: '1', alias: two}]\n", "two: {x: 7}\n", ab)
	add("version that does not fit", "dependencies: [{name: a, version: '2'}]\n", "", ab)
	add("version that is none", "dependencies: [{name: a, version: 'x y'}]\n", "", ab)
	add("subchart that is not there", "dependencies: [{name: no, version: '1'}]\n", "", ab)
	add("empty dependencies", "dependencies: []\n", "", ab)
	add("import of child to parent", "dependencies: [{name: a, version: '1', import-values: [{child: table, parent: mine}]}]\n", "mine: {k: 9}\n", ab)
	add("import to a deep parent", "dependencies: [{name: a, version: '1', import-values: [{child: table, parent: mine.is.deep}]}]\n", "mine: {is: {deep: {z: null}}}\n", ab)
	add("import to the root", "dependencies: [{name: a, version: '1', import-values: [{child: table, parent: .}]}]\n", "k: 9\n", ab)
	add("import of exports", "dependencies: [{name: a, version: '1', import-values: [data]}]\n", "n: 5\n", ab)
	add("import of what is not there", "dependencies: [{name: a, version: '1', import-values: [no, {child: no, parent: x}, {child: x}, 7]}]\n", "", ab)
	add("import with alias", "dependencies: [{name: a, version: '1', alias: z, import-values: [data, {child: table, parent: t}]}]\n", "z: {table: {k: 3}}\n", ab)
	add("import from a subchart's subchart", "dependencies: [{name: b, version: '>0-0', import-values: [{child: c.nested.deep, parent: d}]}]\n", "", ab)
	add("nulls", "", "a: {x: null, table: {k: null}, new: null}\nlocal: null\nlist: [null]\nmap: {n: null}\nglobal: {g: null, n: null}\n", ab)
	add("null for a subchart", "", "a: null\n", ab)
	add("text for a subchart", "", "a: text\n", ab)
	add("null for a subchart in Chart.yaml", "dependencies: [{name: a, version: '1'}]\n", "a: null\n", ab)
	add("table over text", "", "a: {x: {y: 1}, table: text}\n", ab)
	add("globals", "", "global: {g: top, t: {u: null, v: 2}, s: {w: 1}}\na: {global: {t: {v: 3}, s: 1}}\nb: {global: {c: false}, c: {global: {own: 1}}}\n", ab)
	add("globals that are text", "", "global: text\n", ab)
	add("globals of a subchart that are text", "", "a: {global: text}\n", ab)
	add("values that are a list", "", "[1]\n", nil)
	add("values that are empty", "", "", nil)
	add("values with two equal keys", "", "a: 1\na: 2\n", nil)
	add("values with merge keys and aliases", "", "a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\nc: *a\n", nil)
	add("values of many kinds", "", "yes: no\ni: 0x1F\no: 0o17\nf: 1e3\nbig: 123456789012345678901234567890\nt: 2001-01-01T00:00:00Z\nn: ~\ns: |\n  a\n   b\nb: !!binary aGk=\n1: 2\n", nil)
	add("library charts give helpers alone", "", "", func(files map[string]string) {
		sub(files, "charts/l", "name: l\nversion: 1.0.0\ntype: library\n", "")
		files["charts/l/templates/_h.yaml"] = `{{ define "l.h" }}from {{ .Chart.Name }}{{ end }}`
		files["templates/use.yaml"] = `kind: {{ include "l.h" . }}`
	})
	add("a definition nearer to the top wins", "", "", func(files map[string]string) {
		ab(files)
		files["templates/_h.tpl"] = `{{ define "h" }}top{{ end }}`
		files["charts/a/templates/_h.tpl"] = `{{ define "h" }}a{{ end }}`
		files["charts/a/templates/_z.tpl"] = `{{ define "h" }}z{{ end }}{{ define "e" }}e{{ end }}`
		files["templates/sub/e.tpl"] = `{{ define "e" }}  {{ end }}`
		files["templates/use.yaml"] = `kind: {{ include "h" . }}{{ include "e" . }}`
		files["charts/a/templates/use.yaml"] = `kind: {{ include "h" . }}{{ include "e" . }}`
	})
	add("an archive in charts, and files beside", "dependencies: [{name: a, version: '1', condition: a.on}]\n", "a: {on: true}\n", func(files map[string]string) {
		inner := map[string]string{}
		sub(inner, "charts/deep", "name: deep\nversion: 1.0.0\n", "d: 1\n")
		inner["Chart.yaml"], inner["templates/show.yaml"] = "apiVersion: v2\nname: a\nversion: 1.0.0\n", show
		files["charts/a-1.0.0.tgz"] = string(pack(t, "a", inner))
		files["charts/README.md"], files["charts/.hidden/Chart.yaml"], files["charts/_x/Chart.yaml"] = "x", "x", "x"
		files["charts/a-1.0.0.tgz.prov"], files["README.md"], files["crds/c.yaml"] = "signed", "\xef\xbb\xbfbom", "kind: C\n"
	})
	add("an archive in charts that is none", "", "", func(files map[string]string) { files["charts/a.tgz"] = "x" })
	add("a directory in charts that is no chart", "", "", func(files map[string]string) { files["charts/a/x.yaml"] = "x" })
	add("the first format, with requirements.yaml", "", "a: {on: false}\n", func(files map[string]string) {
		ab(files)
		files["Chart.yaml"] = "name: top\nversion: 1.0.0\n"
		files["requirements.yaml"] = "dependencies: [{name: a, version: '1', condition: a.on}]\n"
		files["requirements.lock"] = "digest: x\n"
	})
	add("requirements.yaml in the second format", "", "a: {on: false}\n", func(files map[string]string) {
		ab(files)
		files["requirements.yaml"] = "dependencies: [{name: a, version: '1', condition: a.on}]\n"
		files["Chart.lock"] = "dependencies: []\n"
	})
	for name, meta := range map[string]string{
		"without a name": "version: 1.0.0", "without a version": "name: x", "with a version that is none": "name: x\nversion: x",
		"with a path for a name": "name: a/b\nversion: 1.0.0", "with an unknown type": "name: a\nversion: 1.0.0\ntype: other",
		"with an alias that is none": "name: a\nversion: 1.0.0\ndependencies: [{name: b, alias: 'a b'}]", "with null": "name: a\nversion: 1.0.0\ndependencies: [null]",
		"with a name twice": "name: a\nversion: 1.0.0\ndependencies: [{name: b}, {name: c, alias: b}]", "that is no YAML": "[", "that is a list": "[]",
		"with control characters": "name: \"a\\tb\"\nversion: 1.0.0",
	} {
		add("Chart.yaml "+name, "", "", func(files map[string]string) { files["Chart.yaml"] = "apiVersion: v2\n" + meta })
	}
	add("a lock that is no YAML", "", "", func(files map[string]string) { files["Chart.lock"] = "[" })
	add("Kubernetes too old for the chart", "kubeVersion: '>=1.99'\n", "", nil)
	add("templates in directories", "", "", func(files map[string]string) {
		files["templates/a/b/c.yaml"], files["templates/a/_p.yaml"], files["templates/_d/x.yaml"] = show, "{{", "kind: D"
	})
	add("order of installation", "", "", func(files map[string]string) {
		files["templates/z.yaml"] = "kind: Service\n---\nkind: Zeta\n---\nkind: Alpha\n--- # more\nkind: Namespace\n---\n\n---\nkind: Deployment\n\n ---\nindented: 1\n"
		files["templates/a.yaml"] = "---\nkind: Service\nmetadata: {name: second}\n---\nkind: CustomResourceDefinition\n---\n# nothing\n"
		files["templates/b.json"], files["templates/c.md"] = `{"kind": "Secret"}`, "kind: Markdown"
	})
	hook := func(kind, events, weight string) string {
		return "kind: " + kind + "\nmetadata: {name: h, annotations: {helm.sh/hook: '" + events + "', helm.sh/hook-weight: '" + weight + "'}}\n---\n"
	}
	add("hooks", "", "", func(files map[string]string) {
		files["templates/h.yaml"] = hook("Job", "pre-install", "5") + hook("Pod", "post-install, Pre-Upgrade ,test", "-5") + hook("ConfigMap", "test-success", "x") +
			hook("Job", "test", "") + hook("Job", "unknown", "") + hook("Job", "pre-install,unknown", "") + hook("Job", "", "") + hook("Job", "crd-install", "")
	})
	add("annotations that are no text", "", "", func(files map[string]string) { files["templates/h.yaml"] = "metadata: {annotations: {a: 1}}" })
	add("a manifest that is no YAML", "", "", func(files map[string]string) { files["templates/h.yaml"] = "a: [" })
	add("a manifest that is text", "", "", func(files map[string]string) { files["templates/h.yaml"] = "text" })
	add("a manifest that is a list", "", "", func(files map[string]string) { files["templates/h.yaml"] = "- a" })
	add("notes that are no YAML", "", "", func(files map[string]string) { files["templates/NOTES.txt"] = "a: [{{ .Chart.Name }}" })
	schema := func(text string) func(files map[string]string) {
		return func(files map[string]string) { ab(files); files["values.schema.json"] = text }
	}
	add("a schema that is met", "", "n: 1\n", schema(`{"properties": {"n": {"type": "integer"}}, "required": ["n"]}`))
	add("a schema that is not met", "", "n: x\n", schema(`{"properties": {"n": {"type": "integer"}}}`))
	add("a schema that is no JSON", "", "n: x\n", schema(`{`))
	add("a schema with definitions", "", "n: x\n", schema(`{"$defs": {"t": {"type": "string"}}, "properties": {"n": {"$ref": "#/$defs/t"}}}`))
	add("a schema of a subchart that is not met", "", "a: {x: text}\n", func(files map[string]string) {
		ab(files)
		files["charts/a/values.schema.json"] = `{"properties": {"x": {"type": "integer"}}}`
	})
	add("values that one template changes and another sees", "", "a: 1\n", func(files map[string]string) {
		files["templates/a.yaml"] = `{{ $_ := set .Values "a" 2 }}{{ $_ := set .Values "map" (dict) }}`
		files["templates/z.yaml"] = `{{ $_ := set .Values "a" (add .Values.a 5) }}`
	})
	return all
}

// What a chart means is what the library makes of it.
func TestRules(t *testing.T) {
	var seen outcome
	for name, data := range charts(t) {
		t.Run(name, func(t *testing.T) {
			for _, o := range []helmtemplate.Options{
				{},
				{KubeVersion: "1.33"},
				{Values: map[string]any{"a": map[string]any{"x": nil, "enabled": true, "on": true, "new": map[string]any{"n": nil}},
					"b": map[string]any{"c": map[string]any{"on": false}}, "n": int64(3), "global": map[string]any{"g": "user", "t": nil}}},
				{Values: map[string]any{"tags": map[string]any{"t": true}, "a": map[string]any{"table": nil, "enabled": false}, "mine": nil}},
			} {
				if random := compareArchive(t, data, o, &seen); len(random) > 0 {
					t.Error("it is random")
				}
			}
		})
	}
	t.Logf("%+v", seen)
	if seen.rendered < 150 || seen.failed < 40 {
		t.Errorf("%+v", seen)
	}
}
