package template_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/render/template"
)

// subsText returns a substitutes template of a package "a" with one channel and substitutions of the form BASE=IMAGE.
// The channel is given by its entries; bundles are generated for them.
func subsText(t testing.TB, entries []declcfg.ChannelEntry, substitutions ...string) string {
	t.Helper()
	var lines []string
	add := func(b declcfg.Blob) { lines = append(lines, "- "+string(declcfg.AppendJSON(nil, b, false))) }
	add(&declcfg.Package{Name: "a", DefaultChannel: "c"})
	add(&declcfg.Channel{Name: "c", Package: "a", Entries: entries})
	for _, e := range entries {
		version := strings.TrimPrefix(e.Name, "a.v")
		b := newBundle("a", version, "example.com/a:v"+strings.ReplaceAll(version, "+", "_"))
		add(&b)
	}
	var subs []map[string]string
	for _, s := range substitutions {
		base, name, _ := strings.Cut(s, "=")
		if name != "" && !strings.Contains(name, "/") {
			name = "example.com/a:v" + name
		}
		subs = append(subs, map[string]string{"base": base, "name": name})
	}
	list, err := json.Marshal(subs)
	if err != nil {
		t.Fatal(err)
	}
	return "schema: olm.template.substitutes\nentries:\n" + strings.Join(lines,
		"\n") + "\nsubstitutions: " + string(list) + "\n"
}

func TestSubstitution(t *testing.T) {
	type entries = []declcfg.ChannelEntry
	for _, c := range []struct {
		name          string
		entries       entries
		substitutions []string
		want          string
	}{
		{"nothing to do", entries{{Name: "a.v1.0.0"}}, nil, `
  a.v1.0.0
`},
		{"the only bundle", entries{{Name: "a.v1.0.0"}}, []string{"a.v1.0.0=1.0.1"}, `
  a.v1.0.0
  a.v1.0.1 skips a.v1.0.0
`},
		{"the head keeps its edges in its substitute",
			entries{{Name: "a.v1.1.0", Replaces: "a.v1.0.0", Skips: []string{"a.v0.9.0"}, SkipRange: "<1.1.0"},
				{Name: "a.v1.0.0"}}, []string{"a.v1.1.0=1.1.1"}, `
  a.v1.1.0
  a.v1.0.0
  a.v1.1.1 <- a.v1.0.0 skips a.v0.9.0 a.v1.1.0 range <1.1.0
`},
		{"what replaced the base replaces the substitute and skips the base",
			entries{{Name: "a.v1.1.0", Replaces: "a.v1.0.0"}, {Name: "a.v1.0.0"}}, []string{"a.v1.0.0=1.0.1"}, `
  a.v1.1.0 <- a.v1.0.1 skips a.v1.0.0
  a.v1.0.0
  a.v1.0.1 skips a.v1.0.0
`},
		{"what skipped the base skips the substitute instead",
			entries{{Name: "a.v1.2.0", Replaces: "a.v1.0.0", Skips: []string{"a.v1.1.0"}},
				{Name: "a.v1.1.0", Replaces: "a.v1.0.0"}, {Name: "a.v1.0.0"}}, []string{"a.v1.1.0=1.1.1"}, `
  a.v1.2.0 <- a.v1.0.0 skips a.v1.1.1
  a.v1.1.0
  a.v1.0.0
  a.v1.1.1 <- a.v1.0.0 skips a.v1.1.0
`},
		{"one after the other", entries{{Name: "a.v1.2.0", Replaces: "a.v1.1.0"},
			{Name: "a.v1.1.0", Replaces: "a.v1.0.0"}, {Name: "a.v1.0.0"}}, []string{"a.v1.1.0=1.1.1", "a.v1.2.0=1.2.1"},
			`
  a.v1.2.0
  a.v1.1.0
  a.v1.0.0
  a.v1.1.1 <- a.v1.0.0 skips a.v1.1.0
  a.v1.2.1 <- a.v1.1.1 skips a.v1.1.0 a.v1.2.0
`},
		{"a substitute has a substitute", entries{{Name: "a.v1.1.0", Replaces: "a.v1.0.0"}, {Name: "a.v1.0.0"}},
			[]string{"a.v1.0.0=1.0.1", "a.v1.0.1=1.0.2"}, `
  a.v1.1.0 <- a.v1.0.2 skips a.v1.0.0 a.v1.0.1
  a.v1.0.0
  a.v1.0.1
  a.v1.0.2 skips a.v1.0.0 a.v1.0.1
`},
		{"a skip that is there already is not there twice",
			entries{{Name: "a.v1.1.0", Replaces: "a.v1.0.0", Skips: []string{"a.v1.0.0"}}, {Name: "a.v1.0.0"}},
			[]string{"a.v1.0.0=1.0.1"}, `
  a.v1.1.0 <- a.v1.0.1 skips a.v1.0.0
  a.v1.0.0
  a.v1.0.1 skips a.v1.0.0
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl := parse(t, subsText(t, c.entries, c.substitutions...))
			for range 2 { // the second time, nothing of the first remains
				got, err := tmpl.Render(t.Context(), template.RenderOptions{Render: (&registry{}).render})
				if err != nil {
					t.Fatal(err)
				}
				if want := "a: c\nc" + c.want; graph(got) != want {
					t.Errorf("got\n%s\nwant\n%s", graph(got), want)
				}
				if err := got.Validate(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Only channels of the base's package that contain the base are changed.
func TestSubstitutionElsewhere(t *testing.T) {
	text := `schema: olm.template.substitutes
entries:
- {schema: olm.package, name: a, defaultChannel: c}
- {schema: olm.channel, package: a, name: c, entries: [{name: a.v1.0.0}]}
- {schema: olm.channel, package: a, name: d, entries: [{name: a.v2.0.0, skips: [a.v1.0.0]}]}
- {schema: olm.bundle, package: a, name: a.v1.0.0, image: "example.com/a:v1.0.0", properties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]}
- {schema: olm.bundle, package: a, name: a.v2.0.0, image: "example.com/a:v2.0.0", properties: [{type: olm.package, value: {packageName: a, version: 2.0.0}}]}
- {schema: olm.package, name: b, defaultChannel: c}
- {schema: olm.channel, package: b, name: c, entries: [{name: a.v1.0.0}]}
- {schema: olm.bundle, package: b, name: a.v1.0.0, image: "example.com/b:v1.0.0", properties: [{type: olm.package, value: {packageName: b, version: 1.0.0}}]}
- {schema: olm.deprecations, package: a, entries: [{reference: {schema: olm.bundle, name: a.v1.0.0}, message: old}]}
- {schema: custom, package: a, v: 1.0}
substitutions:
- {name: "example.com/a:v1.0.1", base: a.v1.0.0}
`
	got, err := render(t, text)
	if err != nil {
		t.Fatal(err)
	}
	want := `a: c
b: c
c
  a.v1.0.0
  a.v1.0.1 skips a.v1.0.0
d
  a.v2.0.0 skips a.v1.0.0
c
  a.v1.0.0
`
	if graph(got) != want {
		t.Errorf("got\n%s\nwant\n%s", graph(got), want)
	}
	if len(got.Deprecations) != 1 || len(got.Others) != 1 || !strings.Contains(string(got.Others[0].Blob), `"v":1.0`) {
		t.Errorf("deprecations %v, others %v", got.Deprecations, got.Others)
	}
}

func TestSubstitutionsThatCannotBe(t *testing.T) {
	type entries = []declcfg.ChannelEntry
	two := entries{{Name: "a.v1.1.0", Replaces: "a.v1.0.0"}, {Name: "a.v1.0.0"}}
	for _, c := range []struct {
		name          string
		entries       entries
		substitutions []string
		want          []string
		opm           string
	}{
		{"no name", two, []string{"a.v1.0.0="}, []string{"7: substitution name cannot be empty"},
			`rendering template: render: error processing substitution "a.v1.0.0" -> "": substitution name cannot be empty`},
		{"no base", two, []string{"=1.0.1"}, []string{"7: substitution base cannot be empty"}, ""},
		{"neither", two, []string{"="}, []string{"7: substitution name cannot be empty"}, ""},
		{"the same", two, []string{"x/y=x/y"}, []string{"7: substitution name and base cannot be the same"}, ""},
		{"a base twice", two, []string{"a.v1.0.0=1.0.1", "a.v1.0.0=1.0.2"},
			[]string{"7: cannot reuse the same substitution base"}, ""},
		{"a name twice", two, []string{"a.v1.0.0=1.2.1", "a.v1.1.0=1.2.1"},
			[]string{"7: cannot use the same substitution name"}, ""},
		{"several at once", two, []string{"=1.0.1", "a.v1.0.0="},
			[]string{"7: substitution base", "7: substitution name"}, ""},
		{"an unknown base", two, []string{"a.v1.0.5=1.0.6"},
			[]string{`7: base bundle "a.v1.0.5" does not exist in catalog`},
			`rendering template: render: error processing substitution "a.v1.0.5" -> "example.com/a:v1.0.6": base bundle "a.v1.0.5" does not exist in catalog`},
		{"a base that comes to be only later", two, []string{"a.v1.0.1=1.0.2", "a.v1.0.0=1.0.1"},
			[]string{`7: base bundle "a.v1.0.1" does not exist in catalog`}, ""},
		{"a base whose own substitution fails", two, []string{"nosuch=1.0.1", "a.v1.0.1=1.0.2"},
			[]string{`7: base bundle "nosuch" does not exist in catalog`}, ""},
		{"equal versions", two, []string{"a.v1.0.0=1.0.0"},
			[]string{`7: base bundle "a.v1.0.0" (version 1.0.0) is not less than substitute bundle "a.v1.0.0"`}, ""},
		{"equal but for build metadata", two, []string{"a.v1.0.0=1.0.0_1"},
			[]string{`7: base bundle "a.v1.0.0" (version 1.0.0) is not less than substitute bundle "a.v1.0.0+1" (version 1.0.0+1)`}, ""},
		{"a lower version", two, []string{"a.v1.1.0=1.0.5"},
			[]string{`7: base bundle "a.v1.1.0" (version 1.1.0) is not less than substitute bundle "a.v1.0.5"`}, ""},
		{"a pre-release", two, []string{"a.v1.0.0=1.0.0-rc.1"},
			[]string{`7: base bundle "a.v1.0.0" (version 1.0.0) is not less than substitute bundle`}, ""},
		{"one that the catalog has", two, []string{"a.v1.0.0=1.1.0"},
			[]string{`7: substitute bundle "a.v1.1.0" is in the catalog already`}, ""},
		{"another package", two, []string{"a.v1.0.0=example.com/b:v1.0.1"},
			[]string{`7: base bundle "a.v1.0.0" is of package "a", substitute bundle "b.v1.0.1" of package "b"`}, ""},
		{"no version", two, []string{"a.v1.0.0=one"},
			[]string{`7: substitute bundle "a.vone": error parsing bundle "a.vone" version "one"`}, ""},
		{"no such image", two, []string{"a.v1.0.0=example.com/nosuch", "a.v1.1.0=example.com/none"},
			[]string{`7: render reference "example.com/nosuch"`, `7: render reference "example.com/none"`},
			`rendering template: render: error processing substitution "a.v1.0.0" -> "example.com/nosuch": render reference "example.com/nosuch": manifest unknown`},
		{"entries without a bundle", append(two, declcfg.ChannelEntry{Name: "a.v1.0.0"}), nil,
			[]string{"4: invalid package", "7: package \"a\" has duplicate bundle"},
			`rendering template: render: entries are not valid FBC: invalid package "a", channel "c": duplicate entry "a.v1.0.0"`},
		{"two heads", entries{{Name: "a.v1.1.0"}, {Name: "a.v1.0.0"}}, nil,
			[]string{`4: package "a", channel "c": multiple channel heads found in graph: a.v1.0.0, a.v1.1.0`},
			"rendering template: render: entries are not valid FBC: invalid index:\n└── invalid package " +
				"\"a\":\n    └── invalid channel \"c\":\n        └── multiple channel heads found in graph: " +
				"a.v1.0.0, a.v1.1.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tryRender(t.Context(), subsText(t, c.entries, c.substitutions...))
			wantProblems(t, err, c.want...)
			if got := err.(*template.Error).OpmMessage(); c.opm != "" && got != c.opm {
				t.Errorf("opm's message: got %s\nwant %s", got, c.opm)
			}
		})
	}
}

func tryRender(ctx context.Context, text string) (*declcfg.Catalog, error) {
	tmpl, err := template.ParseOptions{Name: "t.yaml"}.Parse(ctx, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return tmpl.Render(ctx, template.RenderOptions{Render: (&registry{}).render})
}

// The version of a substitute must be higher than the base's; releases count if the bundle declares one.
func TestSubstitutesAreHigher(t *testing.T) {
	type version struct{ version, release, substitutesFor string }
	for _, c := range []struct {
		base, substitute version
		ok               bool
	}{
		{version{"1.0.0", "", ""}, version{"1.0.1", "", ""}, true},
		{version{"1.0.0", "", ""}, version{"1.0.0", "1", ""}, true},
		{version{"1.0.0", "1", ""}, version{"1.0.0", "2", ""}, true},
		{version{"1.0.0", "9", ""}, version{"1.0.0", "10", ""}, true},
		{version{"1.0.0", "1.a", ""}, version{"1.0.0", "1.b", ""}, true},
		{version{"1.0.0", "2", ""}, version{"1.0.0", "1", ""}, false},
		{version{"1.0.0", "1", ""}, version{"1.0.0", "1", ""}, false},
		{version{"1.0.0", "1", ""}, version{"1.0.0", "", ""}, false},
		{version{"1.0.0", "1", ""}, version{"1.0.1", "", ""}, true},
		{version{"1.0.0", "", ""}, version{"1.0.0+1", "", "x"}, true},
		{version{"1.0.0", "", ""}, version{"1.0.0+1", "", ""}, false},
		{version{"1.0.0+2", "", "x"}, version{"1.0.0+1", "", "y"}, false},
		{version{"1.0.0-rc.1", "", ""}, version{"1.0.0", "", ""}, true},
	} {
		bundleOf := func(v version, image string) declcfg.Bundle {
			p, err := declcfg.NewProperty(declcfg.PropertyPackage,
				property.Package{PackageName: "a", Version: v.version, Release: v.release})
			if err != nil {
				t.Fatal(err)
			}
			name := "a." + image
			if v.release != "" {
				name = "a-v" + v.version + "-" + v.release
			}
			b := declcfg.Bundle{Name: name, Package: "a", Image: "example.com/" + image,
				Properties: []declcfg.Property{p}}
			if v.substitutesFor != "" {
				b.Properties = append(b.Properties,
					declcfg.NewBundleObject([]byte(
						`{"kind":"ClusterServiceVersion","metadata":{"annotations":{"olm.substitutesFor":"`+
							v.substitutesFor+`"}}}`)))
			}
			return b
		}
		base, substitute := bundleOf(c.base, "base"), bundleOf(c.substitute, "substitute")
		text := fmt.Sprintf("schema: olm.template.substitutes\nentries:\n- {schema: olm.package, name: a, "+
			"defaultChannel: c}\n"+
			"- {schema: olm.channel, package: a, name: c, entries: [{name: %q}]}\n- %s\nsubstitutions: [{name: "+
			"example.com/substitute, base: %q}]\n",
			base.Name, declcfg.AppendJSON(nil, &base, false), base.Name)
		_, err := parse(t, text).Render(t.Context(),
			template.RenderOptions{Render: func(context.Context, string) (*declcfg.Catalog, error) {
				return &declcfg.Catalog{Bundles: []declcfg.Bundle{substitute}}, nil
			}})
		if c.ok != (err == nil) {
			t.Errorf("%v -> %v: %v", c.base, c.substitute, err)
		}
		if err != nil && !strings.Contains(err.Error(),
			"is not less than substitute bundle") && base.Name != substitute.Name {
			t.Errorf("%v -> %v: %v", c.base, c.substitute, err)
		}
	}
}

func TestSubstitutesSyntax(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"unknown fields",
			"schema: olm.template.substitutes\nentires: []\nsubstitutions:\n- name: a\n  base: b\n  bsae: c\n",
			[]string{`2: unknown field "entires"`, `6: unknown field "bsae" in substitution`}},
		{"kinds", "schema: olm.template.substitutes\nentries: {}\nsubstitutions: x\n",
			[]string{"2: entries is an object, expected a list", "3: substitutions is a string, expected a list"}},
		{"kinds below", "schema: olm.template.substitutes\nentries: [1]\nsubstitutions:\n- a\n- name: [x]\n",
			[]string{"2: entries[0] is a number, expected an object",
				"4: substitutions[0] is a string, expected an object",
				"5: substitutions[1].name is a list, expected a string"}},
		{"blobs",
			"schema: olm.template.substitutes\nentries:\n- {name: x}\n- {schema: olm.package, name: x}\n- {schema: " +
				"olm.channel, entries: x}\n",
			[]string{`3: object '{"name":"x"}`, `5: olm.channel: entries is a string, expected a list`}},
		{"another package's bundle",
			"schema: olm.template.substitutes\nentries:\n- {schema: olm.channel, package: x, name: c}\n",
			[]string{`3: unknown package "x" for channel "c"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tryRender(t.Context(), c.text)
			wantProblems(t, err, c.want...)
		})
	}
}
