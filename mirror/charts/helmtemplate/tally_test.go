package helmtemplate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/charts/helmtemplate"
)

// aliases returns the dependencies of a chart with a subchart under n names.
func aliases(n int, sub string) string {
	var b strings.Builder
	b.WriteString("dependencies:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {name: %s, version: '*', alias: %s%d}\n", sub, sub, i)
	}
	return b.String()
}

// What a small archive makes by names of subcharts, and what the parser makes of templates, is bounded before it is made.
func TestBoundsOfCopies(t *testing.T) {
	sub := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" }
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "k%d: %s\n", i, strings.Repeat("x", 300))
	}
	nested := map[string]string{"Chart.yaml": meta}
	at, above := "", "c"
	for i := range 10 {
		name := string(rune('d' + i))
		nested[at+"Chart.yaml"] = sub(above) + aliases(10, name)
		at, above = at+"charts/"+name+"/", name
	}
	nested[at+"Chart.yaml"] = sub(above)
	small := map[string]string{}
	for i := range 100 {
		small[fmt.Sprintf("charts/s/f%d", i)] = "x"
	}
	for name, c := range map[string]struct {
		deps  string
		files map[string]string
		want  string
	}{
		"names of a subchart":            {aliases(1001, "s"), nil, "more subcharts (limit 1000)"},
		"names in names":                 {"", nested, "more subcharts (limit 1000)"},
		"templates under many names":     {aliases(100, "s"), map[string]string{"charts/s/templates/t.yaml": "#" + strings.Repeat(" ", 4<<20)}, "more bytes of templates (limit 67108864)"},
		"CRDs under many names":          {aliases(100, "s"), map[string]string{"charts/s/crds/t.yaml": "#" + strings.Repeat(" ", 4<<20)}, "more bytes of templates (limit 67108864)"},
		"files under many names":         {aliases(600, "s"), small, "more files (limit 50000)"},
		"values under many names":        {aliases(100, "s"), map[string]string{"charts/s/values.yaml": many.String()}, "more bytes of values (limit 33554432)"},
		"global values under many names": {aliases(100, "s"), map[string]string{"values.yaml": "global:\n  x:\n" + strings.ReplaceAll(many.String(), "k", "    k")}, "more bytes of values (limit 33554432)"},
		"imports of values": {"dependencies:\n- name: s\n  version: '*'\n  import-values:\n" + func() string {
			var b strings.Builder
			for i := range 100 {
				fmt.Fprintf(&b, "  - {child: x, parent: p%d}\n", i)
			}
			return b.String()
		}(), map[string]string{"charts/s/values.yaml": "x:\n" + strings.ReplaceAll(many.String(), "k", "  k")}, "has more bytes"},
		"actions":           {"", map[string]string{"templates/t.yaml": strings.Repeat("{{.}}", 1<<19)}, "its templates have more actions (limit 300000)"},
		"long actions":      {"", map[string]string{"templates/t.yaml": "{{ `" + strings.Repeat("x", 1<<22) + "` }}", "templates/u.yaml": "{{ `" + strings.Repeat("x", 1<<22) + "` }}"}, "the actions of its templates have more bytes (limit 8388608)"},
		"actions of tpl":    {"", map[string]string{"templates/t.yaml": `{{ tpl (repeat 400000 "{{.}}") . }}`}, "its templates have more actions (limit 300000)"},
		"tpl again":         {"", map[string]string{"templates/t.yaml": `{{ range until 10 }}{{ $x := tpl (repeat 40000 "{{1}}") . }}{{ end }}`}, ""},
		"manifests":         {"", map[string]string{"templates/t.yaml": `{{ repeat 100001 "a: 1\n---\n" }}`}, "it has more manifests (limit 100000)"},
		"a subchart, twice": {aliases(2, "s"), map[string]string{"charts/s/templates/t.yaml": "kind: A"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"Chart.yaml": meta + c.deps}
			if strings.Contains(c.deps, "name: s") {
				files["charts/s/Chart.yaml"] = sub("s")
			}
			maps.Copy(files, c.files)
			chart, err := helmtemplate.Parse(t.Context(), pack(t, "c", files), "c.tgz", helmtemplate.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = chart.Render(t.Context(), helmtemplate.Options{})
			runtime.ReadMemStats(&after)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || fault.ClassOf(err) != fault.Limit) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 1<<10 {
				t.Errorf("%d MiB were allocated", n)
			}
		})
	}
}

// ending is a context that ends when it has been asked so many times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// The end of the context ends the parsing of templates, too: the last one, which cannot be parsed, is not reached.
func TestCanceledParsing(t *testing.T) {
	files := map[string]string{"Chart.yaml": meta, "templates/a.yaml": "{{"}
	for i := range 1000 {
		files[fmt.Sprintf("templates/t%d.yaml", i)] = "{{.}}"
	}
	c, err := helmtemplate.Parse(t.Context(), pack(t, "c", files), "c.tgz", helmtemplate.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.RenderFiles(&ending{context.Background(), 500}, helmtemplate.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
