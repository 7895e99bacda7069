package web

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/cputime"
	"github.com/operator-bindery/bindery/internal/testing/race"
)

// detailFS is a catalog of a package "p" with a bundle "p.v1" that has manifests: values that become JSON, or texts
// that are taken as they are.
func detailFS(t testing.TB, gvks []any, manifests ...any) fstest.MapFS {
	t.Helper()
	property := func(kind string, value any) map[string]any { return map[string]any{"type": kind, "value": value} }
	properties := []any{property("olm.package", map[string]string{"packageName": "p", "version": "1.0.0"})}
	for _, gvk := range gvks {
		properties = append(properties, property("olm.gvk", gvk))
	}
	for _, m := range manifests {
		text, ok := m.(string)
		if !ok {
			text = jsonOf(t, m)
		}
		properties = append(properties, property("olm.bundle.object", map[string][]byte{"data": []byte(text)}))
	}
	return fstest.MapFS{"c.json": {Data: []byte(`{"schema":"olm.package","name":"p","defaultChannel":"c"}
{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"p.v1"}]}
` + jsonOf(t, map[string]any{"schema": "olm.bundle", "package": "p", "name": "p.v1", "image": "example.test/p:v1",
		"properties": properties}))}}
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type m = map[string]any

// csvWith is a ClusterServiceVersion with annotations.
func csvWith(annotations map[string]string) any {
	return m{"kind": "ClusterServiceVersion", "metadata": m{"name": "p.v1", "annotations": annotations}}
}

// crdWith is a CustomResourceDefinition of the kind Thing with one version.
func crdWith(schema any) m {
	return m{"kind": "CustomResourceDefinition", "metadata": m{"name": "things.p.test"}, "spec": m{"group": "p.test",
		"names": m{"kind": "Thing"}, "scope": "Cluster", "versions": []any{m{"name": "v1", "served": true,
			"storage": true, "schema": m{"openAPIV3Schema": schema}}}}}
}

func objectOf(properties m, more ...any) m {
	out := m{"type": "object", "properties": properties}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

// fileOf returns the text of a page that has to be whole.
func pageOf(t testing.TB, address string) (document, string) {
	t.Helper()
	a := get(t, address)
	if a.code != 200 {
		t.Fatalf("%s: %d %s", address, a.code, a.body)
	}
	d := parsePage(t, a.body)
	if err := d.check(); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	return d, a.body
}

// wordsOf returns the text of a page with blanks between its elements.
func wordsOf(body string) string {
	_, body, _ = strings.Cut(body, "<main")
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " "))
	return strings.Join(strings.Fields(text), " ")
}

const (
	bundleOfP     = "/bundle?package=p&name=p.v1"
	definitionOfP = "/definition?package=p&name=p.v1&crd=things.p.test"
	fileOfP       = "/file?package=p&name=p.v1&file="
)

// The examples of a kind are below it as YAML, in the order in which the bundle provides the kinds; the object to be
// created after the installation is the first one and not there twice.
func TestExamples(t *testing.T) {
	first := m{"apiVersion": "p.test/v1", "kind": "Thing", "metadata": m{"name": "first"}, "spec": m{"size": 1.50}}
	list := []any{
		m{"apiVersion": "p.test/v1", "kind": "Other", "metadata": m{"name": "unprovided"}},
		m{"apiVersion": "p.test/v1", "kind": "Animal", "metadata": m{"name": "late"}},
		m{"apiVersion": "p.test/v1", "kind": "Thing", "metadata": m{"name": "second"}}, first}
	gvks := []any{m{"group": "p.test", "version": "v1", "kind": "Thing"}, m{"group": "p.test", "version": "v1",
		"kind": "Animal"}}
	annotations := map[string]string{"alm-examples": jsonOf(t, list),
		"operatorframework.io/initialization-resource": jsonOf(t, first)}
	withMetadata := detailFS(t, gvks)
	withMetadata["c.json"].Data = []byte(strings.Replace(string(withMetadata["c.json"].Data), `"properties":[`,
		`"properties":[`+jsonOf(t, m{"type": "olm.csv.metadata", "value": m{"annotations": annotations,
			"apiServiceDefinitions": m{}, "crdDescriptions": m{}}})+",", 1))
	for name, fsys := range map[string]fstest.MapFS{"manifests": detailFS(t, gvks, csvWith(annotations)),
		"metadata": withMetadata} {
		server := siteOf(t, contentOf(t, fsys))
		for _, page := range []string{bundleOfP, "/package?name=p"} {
			_, body := pageOf(t, server.URL+page)
			at := 0
			for _, text := range []string{`id="examples"`, "<h3>Thing ", ">first<", "to be created after the installation",
				"spec:\n  size: 1.5\n", ">second<", "<h3>Animal ", ">late<", "apiVersion: p.test/v1\nkind: Animal\n",
				"<h3>Other "} {
				next := strings.Index(body[at:], text)
				if next < 0 {
					t.Fatalf("%s%s: %q is not there or not at its place in\n%s", name, page, text, body)
				}
				at += next
			}
			if n := strings.Count(body, "<code>first</code>"); n != 1 {
				t.Errorf("%s%s: the first example is there %d times", name, page, n)
			}
		}
	}
}

// Annotations that are broken, too large, too deep or too many are no error and no large page.
func TestHostileExamples(t *testing.T) {
	const broken, more = "An annotation with examples cannot be read.", "more bytes"
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for name, test := range map[string]struct {
		text, want string
		most       int
	}{
		"no JSON":       {"[{", broken, 20_000},
		"text":          {`"x"`, broken, 20_000},
		"no objects":    {`[1]`, broken, 20_000},
		"two values":    {`[] []`, broken, 20_000},
		"deep":          {`[{"a":` + deep + `}]`, broken, 20_000},
		"very large":    {`[{"a":"` + strings.Repeat("x", maxExampleText) + `"}]`, broken, 20_000},
		"large":         {`[{"kind":"K","a":["` + strings.Repeat(`x","`, 20_000) + `"]}]`, more, 60_000},
		"one long line": {`[{"kind":"K","a":"` + strings.Repeat("x", 100_000) + `"}]`, more, 60_000},
		"many":          {`[{"kind":"K"}` + strings.Repeat(`,{"kind":"K"}`, 5_000) + `]`, "More examples are not", 60_000},
		"one object":    {`{"kind":"Lonely","metadata":{"name":"n"}}`, "Lonely", 20_000},
		"script":        {`[{"kind":"<script>","metadata":{"name":"\u202e"},"<b>":"<i>"}]`, `&lt;script&gt;`, 20_000},
		"wrong types":   {`[{"kind":7,"apiVersion":[],"metadata":"x"}]`, "apiVersion: []", 20_000},
	} {
		server := siteOf(t, contentOf(t, detailFS(t, nil, csvWith(map[string]string{"alm-examples": test.text}))))
		_, body := pageOf(t, server.URL+bundleOfP)
		if !strings.Contains(body, test.want) || len(body) > test.most {
			t.Errorf("%s: %q is wanted in a page of %d bytes", name, test.want, len(body))
		}
		_, body = pageOf(t, server.URL+"/package?name=p")
		if !strings.Contains(body, `id="examples"`) {
			t.Errorf("%s: the package has no examples", name)
		}
	}
	server := siteOf(t, contentOf(t, detailFS(t, nil, csvWith(nil))))
	if _, body := pageOf(t, server.URL+bundleOfP); strings.Contains(body, "Examples") {
		t.Error("a bundle without examples has a heading for them")
	}
}

// The fields of a definition are a tree in alphabetical order, with types in words.
func TestDefinition(t *testing.T) {
	schema := objectOf(m{"apiVersion": m{"type": "string"}, "status": objectOf(m{"ready": m{"type": "boolean"}}),
		"spec": objectOf(m{
			"size": m{"type": "integer", "format": "int32", "default": 3, "minimum": 1, "description": "How large it is."},
			"mode": m{"type": "string", "enum": []string{"A", "B"}},
			"ports": m{"type": "array", "items": objectOf(m{
				"number": m{"x-kubernetes-int-or-string": true, "anyOf": []any{m{}}}})},
			"labels": m{"type": "object", "additionalProperties": m{"type": "array", "items": m{"type": "string",
				"maxLength": 9}}},
			"open":   m{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "additionalProperties": false},
			"choice": m{"nullable": true, "oneOf": []any{m{}}},
		}, "required", []string{"mode"}, "description", "What is wanted.")})
	crd := crdWith(schema)
	versions := crd["spec"].(m)["versions"].([]any)
	crd["spec"].(m)["versions"] = append(versions, m{"name": "v0", "deprecated": true, "deprecationWarning": "Use v1."})
	server := siteOf(t, contentOf(t, detailFS(t, []any{m{"group": "p.test", "version": "v1", "kind": "Thing"},
		m{"group": "q.test", "version": "v1", "kind": "Thing"}}, crd)))
	d, body := pageOf(t, server.URL+definitionOfP)
	text := wordsOf(body)
	at := 0
	for _, want := range []string{"Thing things.p.test · Cluster", "v1 shown here served storage",
		"v0 deprecated Use v1.", "# spec object What is wanted.", "# choice any May be null. Matches exactly one",
		"# labels map of list of string Maximum length: 9", "# mode string required One of: [\"A\",\"B\"]",
		"# open object Other fields are kept.", "# ports list of object # number integer or string # size integer (int32)",
		"How large it is. Default: 3 Minimum: 1", "# status object # ready boolean"} {
		next := strings.Index(text[at:], want)
		if next < 0 {
			t.Fatalf("%q is not there or not at its place in\n%s", want, text)
		}
		at += next
	}
	if strings.Contains(text, "apiVersion") || strings.Contains(text, "Matches one of") {
		t.Errorf("too much is said in\n%s", text)
	}
	for _, id := range []string{"thing.v1.spec", "thing.v1.spec.size", "thing.v1.spec.ports.number",
		"thing.v1.status.ready"} {
		if !slices.Contains(d.ids, id) || !slices.Contains(d.links, "#"+id) {
			t.Errorf("no anchor %q in %q", id, d.ids)
		}
	}
	if !strings.Contains(body, `aria-label="Link to spec">#</a><details open>`) ||
		strings.Count(body, "<details open>") != 1 {
		t.Error("the fields of spec alone are not unfolded")
	}
	if d, _ = pageOf(t, server.URL+definitionOfP+"&version=v0"); !strings.Contains(d.text, "has no fields") {
		t.Errorf("a version without a schema: %s", d.text)
	}
	want := "definition?package=p&name=p.v1&crd=things.p.test&version=v1"
	for _, page := range []string{bundleOfP, "/package?name=p"} {
		d, _ := pageOf(t, server.URL+page)
		if n := len(slices.DeleteFunc(d.links, func(l string) bool { return l != want })); n != 1 {
			t.Errorf("%s has %d links to the definition", page, n)
		}
	}
	crawl(t, server.URL)
	if a := get(t, server.URL+strings.Replace(definitionOfP, "things", "others", 1)); a.code != 404 {
		t.Errorf("a definition that is not there: %d", a.code)
	}
}

// Definitions of apiextensions.k8s.io/v1beta1 have one schema for all versions, or one version without a list.
func TestOldDefinitions(t *testing.T) {
	schema := m{"openAPIV3Schema": objectOf(m{"spec": objectOf(m{"old": m{"type": "string"}})})}
	for name, more := range map[string]m{
		"one version":  {"version": "v1alpha1"},
		"common":       {"versions": []any{m{"name": "v1alpha1", "storage": true, "served": true}}},
		"version both": {"version": "v1alpha1", "versions": []any{m{"name": "v1alpha1", "storage": true}}},
	} {
		crd := crdWith(nil)
		spec := crd["spec"].(m)
		delete(spec, "versions")
		spec["validation"] = schema
		for k, v := range more {
			spec[k] = v
		}
		server := siteOf(t, contentOf(t, detailFS(t, nil, crd)))
		if d, _ := pageOf(t, server.URL+definitionOfP); !slices.Contains(d.ids, "thing.v1alpha1.spec.old") {
			t.Errorf("%s: %q", name, d.ids)
		}
	}
}

// nested returns a schema with objects within objects.
func nested(depth int) string {
	return strings.Repeat(`{"properties":{"a":`, depth) + `{}` + strings.Repeat(`}}`, depth)
}

// Definitions may have any size, depth and names: the page is bounded, its anchors are unique and without blanks, and
// what is left out is said.
func TestHostileDefinitions(t *testing.T) {
	fields := func(n int, key func(int) string, value any) m {
		all := m{}
		for i := range n {
			all[key(i)] = value
		}
		return objectOf(m{"spec": objectOf(all)})
	}
	text := m{"type": "string"}
	raw := func(schema string) string {
		return strings.Replace(jsonOf(t, crdWith("HERE")), `"HERE"`, schema, 1)
	}
	for name, test := range map[string]struct {
		crd  any
		want string
		most int
	}{
		"100,000 fields": {crdWith(fields(100_000, strconv.Itoa, text)), "95001 more fields", 1 << 20},
		"many levels": {crdWith(objectOf(m{"spec": objectOf(m{"a": fields(3_000, strconv.Itoa, text),
			"b": fields(3_000, strconv.Itoa, text)})})), "1005 more fields", 2 << 20},
		"descriptions": {crdWith(fields(1, strconv.Itoa, m{"description": strings.Repeat("é ", 1<<19),
			"default": strings.Repeat("x", 1<<20), "enum": slices.Repeat([]string{"y"}, 100_000)})), "…", 20_000},
		"scripts": {crdWith(fields(2_000, func(i int) string { return fmt.Sprintf("<script>%d\u202e \"'", i) },
			m{"type": "<script>", "format": "<b>", "description": "<script>\u2028", "default": "<script>"})), "<", 3 << 20},
		"equal anchors": {crdWith(fields(2_000, func(i int) string { return string(rune(0x4e00 + i)) }, text)), "#", 1 << 20},
		"anchors that others would get": {crdWith(fields(2_000, func(i int) string {
			if i%2 == 0 {
				return string(rune(0x4e00 + i))
			}
			return "__" + strconv.Itoa(i)
		}, text)), "#", 1 << 20},
		"long names": {crdWith(fields(2_000, func(i int) string { return strings.Repeat("x", 1_000) + strconv.Itoa(i) },
			objectOf(m{"a": text}))), "x", 6 << 20},
		"long kind": {strings.ReplaceAll(jsonOf(t, crdWith(fields(1, strconv.Itoa, text))), "Thing",
			strings.Repeat("K", 100_000)), "K", 20_000},
		"4,000 levels": {raw(nested(4_000)), "none that can be read", 20_000},
		"1,000 levels": {raw(nested(1_000)), "none that can be read", 20_000},
		"30 levels":    {raw(nested(30)), "The fields below are not shown.", 30_000},
		"lists in lists": {raw(strings.Repeat(`{"items":`, 80) + `{}` + strings.Repeat(`}`, 80)),
			"has no fields", 20_000},
		"too large": {crdWith(fields(1, strconv.Itoa, m{"description": strings.Repeat("x", maxDefinition)})),
			"none that can be read", 20_000},
		"no schema": {raw(`null`), "has no fields", 20_000},
		"wrong types": {raw(`{"properties":{"a":7,"b":[],"c":{"type":[],"items":[],"required":{}}},"required":7}`),
			"list of any", 20_000},
		"equal keys": {raw(`{"properties":{"a":{},"a":{"type":"string"}}}`), "a string", 20_000},
		"many versions": {strings.Replace(jsonOf(t, crdWith(nil)), `[{`, `[`+strings.Repeat(`{},`, 100_000)+`{`, 1),
			"More versions are not shown", 30_000},
		"a name of JSON": {strings.Replace(jsonOf(t, crdWith(nil)), `"versions"`, `"version":{"a":[]},"x"`, 1), "", 20_000},
	} {
		server := siteOf(t, contentOf(t, detailFS(t, nil, test.crd)))
		a := get(t, server.URL+definitionOfP)
		d := parsePage(t, a.body)
		if err := d.check(); err != nil {
			t.Errorf("%s: %.300s", name, err)
		}
		if !strings.Contains(wordsOf(a.body), test.want) || len(a.body) > test.most {
			t.Errorf("%s: %q is wanted in a page of %d bytes", name, test.want, len(a.body))
		}
		for _, id := range d.ids {
			if strings.ContainsAny(id, " <>\"'&%#") || len(id) > 300 {
				t.Errorf("%s: an anchor %q", name, id)
			}
		}
		for _, page := range []string{bundleOfP, fileOfP + "1"} {
			if a := get(t, server.URL+page); a.code != 200 || len(a.body) > 2<<20 {
				t.Errorf("%s: %s is %d with %d bytes", name, page, a.code, len(a.body))
			}
		}
	}
}

// The page of a definition with many fields takes a few times the memory of its text, and time in proportion to it.
func TestCostOfDefinition(t *testing.T) {
	show := func(fields int) (func(), int) {
		all := m{}
		for i := range fields {
			all["f"+strconv.Itoa(i)] = m{"type": "string", "x": "y"}
		}
		crd := jsonOf(t, crdWith(objectOf(m{"spec": objectOf(all, "required", []string{"f1"})})))
		b := &declcfg.Bundle{Name: "b", Package: "p", Properties: []declcfg.Property{{Type: declcfg.PropertyBundleObject,
			Value: []byte(jsonOf(t, map[string][]byte{"data": []byte(crd)}))}}}
		return func() {
			p := &page{c: &Content{}, query: url.Values{}}
			p.definition(b, manifestAt(b, 0))
			if !strings.Contains(p.String(), "more fields") {
				t.Error("not all fields are counted")
			}
		}, len(crd)
	}
	large, size := show(48_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	large()
	runtime.ReadMemStats(&after)
	if used := int(after.TotalAlloc - before.TotalAlloc); used > 24*size && !race.Enabled {
		t.Errorf("%d bytes are allocated for a definition of %d bytes", used, size)
	} else {
		t.Logf("%d bytes are allocated for a definition of %d bytes", used, size)
	}
	small, _ := show(6_000)
	if ratio := cputime.Ratio(small, large); ratio > 24 {
		t.Errorf("eight times the fields take %.1f times as long", ratio)
	}
}

// A manifest is shown as YAML with an anchor for every line, and one that is no JSON as it is.
func TestFiles(t *testing.T) {
	server := siteOf(t, contentOf(t, detailFS(t, nil, m{"kind": "Role", "metadata": m{"name": "r"}, "rules": []any{"<b>",
		"a\u202eb\tc", strings.Repeat("x\n", 3)}}, "kind: Service\nmetadata: {name: s}\n", "just a text",
		`{"a":`+strings.Repeat(`[`, 5_000)+strings.Repeat(`]`, 5_000)+`}`,
		m{"kind": "Big", "a": slices.Repeat([]string{"line"}, 20_000)},
		m{"kind": "Wide", "a": strings.Repeat("é", 1<<20)},
		m{"kind": "Huge", "a": slices.Repeat([]string{"line"}, 400_000)})))
	for file, want := range map[string][]string{
		"1": {"kind: Role\nmetadata:\n  name: r\nrules:\n- &lt;b&gt;\n", `u202e`,
			`<a id="L9" href="#L9" tabindex="-1">9</a>`},
		"2": {"kind: Service\nmetadata:\n  name: s</code>", `<a id="L3"`},
		"3": {"<code>just a text</code>"},
		"4": {"- - - -"},
		"5": {"- line", `<a id="L5000"`, "more bytes"},
		"6": {"é", "more bytes"},
		"7": {"  &#34;a&#34;: [\n", `<a id="L5000"`, "more bytes"},
	} {
		d, body := pageOf(t, server.URL+fileOfP+file)
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("file %s: %q is not in\n%.2000s", file, text, body)
			}
		}
		if len(body) > 1<<20 || strings.Contains(body, `id="L5001"`) {
			t.Errorf("file %s: a page of %d bytes", file, len(body))
		}
		if !slices.Contains(d.links, "bundle?package=p&name=p.v1") {
			t.Errorf("file %s: no way back in %q", file, d.links)
		}
	}
	for _, file := range []string{"", "0", "8", "-1", "01", "+1", "1e0", "99999999999999999999", "<script>", "1 "} {
		if a := get(t, server.URL+fileOfP+url.QueryEscape(file)); a.code != 404 {
			t.Errorf("file %q: %d", file, a.code)
		}
	}
	for _, address := range []string{"/file?file=1", "/file?package=p&name=x&file=1", "/file?package=x&name=p.v1&file=1",
		"/definition", "/definition?package=p&name=p.v1", definitionOfP} {
		if a := get(t, server.URL+address); a.code != 404 {
			t.Errorf("%s: %d", address, a.code)
		}
	}
	d, _ := pageOf(t, server.URL+bundleOfP)
	if n := len(slices.DeleteFunc(d.links, func(l string) bool { return !strings.HasPrefix(l, "file?") })); n != 7 {
		t.Errorf("%d links to files", n)
	}
	if d, _ := pageOf(t, siteOf(t, contentOf(t, detailFS(t, nil))).URL+bundleOfP); !strings.Contains(d.text,
		"bindery bundle unpack") {
		t.Error("a bundle without manifests does not say where they are")
	}
}

// What is shown of a text, and what is left out, are the whole text.
func TestCutLines(t *testing.T) {
	for _, test := range []struct {
		text        string
		size, lines int
		want        string
		left        int
	}{
		{"", 10, 5, "", 0}, {"a\nb\n", 10, 5, "a\nb", 0}, {"a\r\nb", 10, 5, "a\nb", 0}, {"a\nb\nc", 10, 2, "a\nb", 2},
		{"a\nb\nc", 4, 5, "a\nb", 2}, {"abcdef", 4, 5, "abcd", 2}, {"a\tb\u202e", 10, 5, "a\tb\\u202e", 0},
		{"ééé", 3, 5, "é\uFFFD", 3}, {"abcdef\ng", 6, 5, "abcdef", 2},
	} {
		if got, left := cutLines(test.text, test.size, test.lines); got != test.want || left != test.left {
			t.Errorf("%q: %q and %d more", test.text, got, left)
		}
	}
}

// Whatever a definition has, its page is whole and its anchors are unique.
func FuzzDefinitionTree(f *testing.F) {
	for _, schema := range []string{
		`{"properties":{"spec":{"properties":{"a":{"type":"array","items":{"properties":{"b":{}}}}}}}}`,
		`{"properties":{"a":{"additionalProperties":true,"items":{}},"é":{"required":["x"],"properties":{"x":{}}}}}`,
		nested(40), `[]`,
		`{"properties":{"x":{"enum":[1,{}],"default":null,"anyOf":[],"x-kubernetes-int-or-string":true}}}`} {
		f.Add(schema, "Thing", "v1")
	}
	f.Fuzz(func(t *testing.T, schema, kind, version string) {
		text := `{"kind":"CustomResourceDefinition","metadata":{"name":"n"},"spec":{"group":"g","names":{"kind":` +
			jsonOf(t, kind) + `},"versions":[{"name":` + jsonOf(t, version) + `,"schema":{"openAPIV3Schema":` + schema + `}}]}}`
		b := &declcfg.Bundle{Name: "b", Package: "p", Properties: []declcfg.Property{{Type: declcfg.PropertyBundleObject,
			Value: []byte(jsonOf(t, map[string][]byte{"data": []byte(text)}))}}}
		manifest := manifestAt(b, 0)
		if manifest == nil || len(text) > 1<<20 {
			return
		}
		p := &page{c: &Content{}, query: url.Values{}}
		p.open("t")
		p.definition(b, manifest)
		p.close("")
		d := parsePage(t, p.String())
		if err := d.check(); err != nil || p.full {
			t.Error(err)
		}
	})
}
