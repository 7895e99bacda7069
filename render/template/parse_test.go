package template_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render/template"
)

func TestTypes(t *testing.T) {
	if got := fmt.Sprint(template.Types()); got != "[basic semver substitutes]" || !slices.IsSorted(template.Types()) {
		t.Errorf("types %s", got)
	}
	for _, typ := range template.Types() {
		if got, err := template.ParseType(string(typ)); err != nil || got != typ {
			t.Errorf("type %q: %q, %v", typ, got, err)
		}
		if got, err := template.TypeOf(typ.Schema()); err != nil || got != typ {
			t.Errorf("schema %q: %q, %v", typ.Schema(), got, err)
		}
	}
	for _, name := range []string{"", "Basic", "olm.semver"} {
		if _, err := template.ParseType(name); err == nil ||
			err.Error() != fmt.Sprintf("invalid template type %q, must be one of: [basic semver substitutes]", name) {
			t.Errorf("type %q: %v", name, err)
		}
	}
	for _, schema := range []string{"", "semver", "OLM.semver"} {
		if _, err := template.TypeOf(schema); err == nil || err.Error() != "unknown template schema: "+schema {
			t.Errorf("schema %q: %v", schema, err)
		}
	}
	if template.Type("x").Schema() != "" {
		t.Error("an unknown type has a schema")
	}
}

func TestDetection(t *testing.T) {
	for text, want := range map[string]template.Type{
		"schema: olm.template.basic\n":                                         template.Basic,
		"SCHEMA: olm.semver\n":                                                 template.Semver,
		"# a comment\n---\nSchema: olm.template.substitutes\n":                 template.Substitutes,
		`{"entries": [], "schema": "olm.template.basic"}`:                      template.Basic,
		"--- \nentries:\n- {schema: olm.semver}\nschema: olm.template.basic\n": template.Basic,
	} {
		if got := parse(t, text).Type(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestWhatIsNoTemplate(t *testing.T) {
	const detecting, rendering = "auto-detecting template type: ", "rendering template: "
	for _, c := range []struct {
		name, text string
		typ        template.Type
		want       []string
		opm        string
	}{
		{"nothing", "", "", []string{"1: the template is empty"}, detecting + "decoding template input: EOF"},
		{"comments", "# x\n", "semver", []string{"1: the template is empty"}, ""},
		{"a list", "- a\n", "", []string{"1: the template is a list, not an object"}, ""},
		{"no YAML", "a: b\nc: [\n", "", []string{"2: yaml: did not find expected node content"}, ""},
		{"no JSON", "{\"schema\": \"olm.semver\",\n\"a\" 1}", "", []string{"2: json: "}, ""},
		{"no schema", "a: b\n", "", []string{"1: template input missing required 'schema' field"},
			detecting + "template input missing required 'schema' field"},
		{"an empty schema", "schema: \"\"\n", "", []string{"1: template input missing"}, ""},
		{"a schema that is null", "schema:\n", "", []string{"1: template input missing"}, ""},
		{"a schema that is a number", "a: b\nschema: 5\n", "",
			[]string{"2: expected value for key \"schema\" to be a string, got a number"}, ""},
		{"two schemas", "Schema: olm.semver\nschema: olm.template.basic\n", "",
			[]string{"2: duplicate keys for key \"schema\""}, ""},
		{"another schema", "\nschema: olm.nosuch\n", "", []string{"2: unknown template schema: olm.nosuch"},
			detecting + "unknown template schema: olm.nosuch"},
		{"another schema, said to be basic", "schema: olm.nosuch\n", "basic",
			[]string{`1: template has unknown schema ("olm.nosuch"), should be "olm.template.basic"`},
			rendering + `template has unknown schema ("olm.nosuch"), should be "olm.template.basic"`},
		{"no schema, said to be substitutes", "a: b\n", "substitutes",
			[]string{`1: template has unknown schema (""), should be "olm.template.substitutes"`}, ""},
		{"no schema, said to be semver", "stable: {}\n", "semver",
			[]string{`1: readFile: input file has unknown schema, should be "olm.semver"`},
			rendering + `render: unable to read file: readFile: input file has unknown schema, should be "olm.semver"`},
		{"more documents", "schema: olm.template.basic\n---\nschema: olm.template.basic\n", "",
			[]string{"3: the text after the first document"}, ""},
		{"a key twice", "schema: olm.template.basic\nentries: []\nentries: []\n", "",
			[]string{`3: duplicate key "entries"`}, ""},
		{"invalid UTF-8", "schema: \xff\n", "", []string{"1: yaml: text is not valid UTF-8"}, ""},
		{"deep", "schema: olm.template.basic\nentries: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n",
			"", []string{"2: depth exceeds the limit of 100"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := template.ParseOptions{Type: c.typ, Name: "t.yaml"}.Parse(t.Context(), strings.NewReader(c.text))
			wantProblems(t, err, c.want...)
			if got := err.(*template.Error).OpmMessage(); c.opm != "" && got != c.opm {
				t.Errorf("opm's message: got %s\nwant %s", got, c.opm)
			}
			if !strings.HasPrefix(err.Error(), "t.yaml:") {
				t.Errorf("no position in %v", err)
			}
		})
	}
	if _, err := (template.ParseOptions{Type: "x"}).Parse(t.Context(), strings.NewReader("")); err == nil ||
		!strings.Contains(err.Error(), "invalid template type") {
		t.Errorf("got %v", err)
	}
}

// What opm ignores is a problem, or with compatibility a warning.
func TestCompat(t *testing.T) {
	text := "schema: olm.template.basic\nname: x\nentries:\n- schema: olm.bundle\n  image: " +
		"example.com/a:v1.0.0\n  note: x\n  image: example.com/a:v1.0.0\n---\n{}\n"
	_, err := template.ParseOptions{Name: "t.yaml"}.Parse(t.Context(), strings.NewReader(text))
	wantProblems(t, err, `2: unknown field "name"`, `6: unknown field "note" in basic template bundle`,
		`7: duplicate key "image"`, "9: the text after the first document")
	var warned []string
	tmpl, err := template.ParseOptions{Name: "t.yaml", Compat: true,
		Warn: func(at declcfg.Position, text string) { warned = append(warned, at.String()+": "+text) }}.Parse(t.Context(), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(warned) != 4 || !slices.Contains(warned, `t.yaml:6:9: unknown field "note" in basic template bundle`) {
		t.Errorf("warned %q", warned)
	}
	if c, err := tmpl.Render(t.Context(), template.RenderOptions{Render: (&registry{}).render}); err != nil ||
		len(c.Bundles) != 1 {
		t.Errorf("got %v, %v", c, err)
	}
}

// opm refuses repeated keys in semver templates too.
func TestCompatOfSemver(t *testing.T) {
	text := "schema: olm.semver\nstable: {}\nstable: {}\n---\n{}\n"
	_, err := template.ParseOptions{Name: "t.yaml", Compat: true}.Parse(t.Context(), strings.NewReader(text))
	wantProblems(t, err, `3: duplicate key "stable"`)
}

// The number of reported problems is limited.
func TestManyProblems(t *testing.T) {
	for _, text := range []string{
		"schema: olm.template.basic\nentries: [" + strings.Repeat("1,", 150_000) + "1]\n",
		`{"schema": "olm.template.basic", "entries": [` + strings.Repeat("1,", 150_000) + "1]}\n",
	} {
		_, err := template.ParseOptions{Name: "t.yaml"}.Parse(t.Context(), strings.NewReader(text))
		var e *template.Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "150001 problems:\n") ||
			!strings.HasSuffix(err.Error(), "\n... and 149901 more problems") {
			t.Errorf("%.300v", err)
		}
	}
}

func TestLongTextIsCut(t *testing.T) {
	_, err := template.ParseOptions{Name: "t.yaml"}.Parse(t.Context(), strings.NewReader("schema: olm.template.basic\nentries:\n- {schema: olm.bundle, name: a, image: "+
		strings.Repeat("x", 1<<20)+"}\n- {schema: olm.package, name: [x], "+
		strings.Repeat("y", 1<<20)+": z}\n"))
	if err == nil || len(err.Error()) > 200<<10 {
		t.Errorf("%d bytes", len(err.Error()))
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		limits template.Limits
	}{
		"size":  {"schema: olm.template.basic\n" + strings.Repeat("#\n", 1000), template.Limits{MaxSize: 1000}},
		"depth": {"schema: olm.template.basic\nentries: [[[]]]\n", template.Limits{MaxDepth: 3}},
		"items": {"schema: olm.template.basic\nentries: [{schema: a}, {schema: a}, {schema: a}]\n",
			template.Limits{MaxItems: 2}},
		"images": {semverText(t, nil, map[string][]string{"stable": {"1.0.0", "1.0.1", "1.0.2"}}),
			template.Limits{MaxImages: 2}},
	} {
		_, err := template.ParseOptions{Limits: c.limits}.Parse(t.Context(), strings.NewReader(c.text))
		if !errors.Is(err, declcfg.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestReading(t *testing.T) {
	broken := errors.New("broken")
	for name, r := range map[string]io.Reader{
		"at once":   failing{broken},
		"half-way":  io.MultiReader(strings.NewReader("schema: olm.template.basic\nentr"), failing{broken}),
		"after it":  io.MultiReader(strings.NewReader("schema: olm.template.basic\n---\n"), failing{broken}),
		"JSON then": io.MultiReader(strings.NewReader(`{"schema": "olm.template.basic"}`), failing{broken}),
	} {
		var problems *template.Error
		if _, err := (template.ParseOptions{}).Parse(t.Context(), r); !errors.Is(err, broken) || errors.As(err,
			&problems) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (template.ParseOptions{}).Parse(ctx, strings.NewReader("schema: olm.template.basic\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestErrorText(t *testing.T) {
	_, err := template.ParseOptions{Name: "t.yaml"}.Parse(t.Context(), strings.NewReader("schema: olm.template.basic\nx: 1\nz: 1\n"))
	if want := "2 problems:\nt.yaml:2:4: unknown field \"x\"\nt.yaml:3:4: unknown field \"z\""; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// Without a name there are no positions.
	_, err = template.ParseOptions{}.Parse(t.Context(), strings.NewReader("schema: olm.template.basic\nx: 1\n"))
	if want := "unknown field \"x\""; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The schemas are named where one is wrong, and not where a value has such words.
func TestHintOfSchemas(t *testing.T) {
	for text, want := range map[string]bool{
		"schema: olm.nosuch\n": true,
		"schema: olm.template.basic\n\"it has unknown schema\": 1\n": false,
	} {
		_, err := template.ParseOptions{Name: "t.yaml"}.Parse(t.Context(), strings.NewReader(text))
		var wrong *template.Error
		if !errors.As(err, &wrong) || (wrong.Hint() != "") != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
