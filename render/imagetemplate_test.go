package render_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/render"
)

func TestImageTemplate(t *testing.T) {
	for text, want := range map[string]string{
		"example.com/{{.Package}}:v{{.Version}}":                               "example.com/foo:v1.0.0",
		`{{printf "%s-%05d" .Name 7}}`:                                         "foo.v1-00007",
		`{{if eq .Package "foo"}}a{{else}}b{{end}}{{with .Name}}/{{.}}{{end}}`: "a/foo.v1",
		`{{.Name | print "x" | html | urlquery}}`:                              "xfoo.v1",
	} {
		it, err := render.ParseImageTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := it.Execute("foo", "foo.v1", "1.0.0"); got != want || err != nil {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// Templates that would loop or need much memory fail quickly, with little memory.
func TestImageTemplateBombs(t *testing.T) {
	for name, text := range map[string]string{
		"loop":                    "{{range 3000000000000}}{{end}}x",
		"loop in a condition":     "{{if .Name}}{{with .Name}}{{range 3000000000000}}x{{end}}{{end}}{{end}}",
		"loop in an else":         "{{if not .Name}}{{else if .Name}}{{range 3000000000000}}x{{end}}{{end}}",
		"recursion":               `{{define "x"}}{{if lt (len .) 60}}{{template "x" (print . "a")}}{{template "x" (print . "a")}}{{end}}{{end}}{{template "x" ""}}`,
		"block":                   `{{block "x" .}}{{end}}`,
		"itself":                  `{{template "image-ref-template" .}}`,
		"width":                   strings.Repeat(`{{printf "%999999d" 1}}`, 500),
		"width of an argument":    `{{printf "%*d" 999999 1}}`,
		"precision":               `{{printf "%.999999f" 1.0}}`,
		"many widths":             `{{printf "` + strings.Repeat("%9999d", 600) + `" 1}}`,
		"argument again":          `{{$x := printf "%4000d" 1}}{{printf "` + strings.Repeat("%[1]s", 800) + `" $x}}`,
		"doubling":                "{{$x := .Name}}" + strings.Repeat("{{$x = print $x $x}}", 60) + "{{$x}}",
		"doubling of escapes":     `{{"\\"` + strings.Repeat("|js", 60) + "}}",
		"doubling, quoted":        `{{"x"` + strings.Repeat(`|printf "%q%[1]q"`, 60) + "}}",
		"long text":               strings.Repeat("x", 5000),
		"text longer than it may": strings.Repeat("x", 1<<20),
	} {
		it, err := render.ParseImageTemplate(text)
		if err == nil {
			var got string
			if got, err = it.Execute("foo", "foo.v1", "1.0.0"); err == nil {
				t.Errorf("%s: made %d bytes", name, len(got))
			}
		}
		if err != nil && len(err.Error()) > 8<<10 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}
