package helmtemplate_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/charts/helmtemplate"
)

const meta = "apiVersion: v2\nname: c\nversion: 1.0.0\n"

// archive returns an archive of entries.
func archive(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range append([]tar.Header{{Name: "c/Chart.yaml", Size: int64(len(meta)), Mode: 0o644}}, entries...) {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		var content io.Reader = io.LimitReader(zeros{}, h.Size)
		if h.Name == "c/Chart.yaml" {
			content = strings.NewReader(meta)
		}
		if _, err := io.Copy(w, content); err != nil {
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

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestHostileArchives(t *testing.T) {
	many := make([]tar.Header, 20_001)
	for i := range many {
		many[i] = tar.Header{Name: "c/files/" + strings.Repeat("x", i%50) + string(rune('a'+i%26)), Typeflag: tar.TypeReg}
	}
	big := make([]tar.Header, 26)
	for i := range big {
		big[i] = tar.Header{Name: "c/" + strings.Repeat("y", i+1), Size: 4 << 20}
	}
	nested := pack(t, "c", map[string]string{"Chart.yaml": meta})
	for range 20 {
		nested = pack(t, "c", map[string]string{"Chart.yaml": meta, "charts/c.tgz": string(nested)})
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"a file above":            {archive(t, tar.Header{Name: "c/../../x"}), "is outside of the chart"},
		"a file above, backwards": {archive(t, tar.Header{Name: `c\..\..\x`}), "is outside of the chart"},
		"an absolute name":        {archive(t, tar.Header{Name: "c//etc/passwd"}), "has an absolute name"},
		"a drive":                 {archive(t, tar.Header{Name: "c/c:/x"}), "is outside of the chart"},
		"a file in no directory":  {archive(t, tar.Header{Name: "x"}), "is in no directory"},
		"a symbolic link":         {archive(t, tar.Header{Name: "c/values.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "is no regular file"},
		"a hard link":             {archive(t, tar.Header{Name: "c/values.yaml", Typeflag: tar.TypeLink, Linkname: "c/Chart.yaml"}), "is no regular file"},
		"a device":                {archive(t, tar.Header{Name: "c/x", Typeflag: tar.TypeChar}), "is no regular file"},
		"a pipe":                  {archive(t, tar.Header{Name: "c/x", Typeflag: tar.TypeFifo}), "is no regular file"},
		"a large file":            {archive(t, tar.Header{Name: "c/x", Size: 6 << 20}), "has more bytes (limit 5242880)"},
		"large files":             {archive(t, big...), "its files have more bytes (limit 104857600)"},
		"many files":              {archive(t, many...), "it has more files (limit 20000)"},
		"a long name":             {archive(t, tar.Header{Name: "c/" + strings.Repeat("x", 2000)}), "is too long (limit 1024)"},
		"deep directories":        {archive(t, tar.Header{Name: "c/" + strings.Repeat("x/", 100)}), "directories in directories"},
		"subcharts in subcharts":  {nested, "subcharts in subcharts (limit 16)"},
		"no compression":          {[]byte("x"), "it is no archive compressed by gzip"},
		"nothing":                 {nil, "it is no archive compressed by gzip"},
		"cut off":                 {archive(t)[:40], "the archive: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := helmtemplate.Parse(t.Context(), c.data, "c.tgz", helmtemplate.Limits{})
			if err == nil || !strings.HasPrefix(err.Error(), "chart c.tgz: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// Links in the directory of a chart are followed within it alone; .helmignore holds for them, too.
func TestDirectory(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(secret, "secret")
	for name, c := range map[string]struct{ link, target, ignore, want string }{
		"within":                  {"values.yaml", "more/v.yaml", "", ""},
		"a directory within":      {"files", "more", "", ""},
		"out, absolute":           {"values.yaml", secret, "", `the link "values.yaml" cannot be followed`},
		"out, relative":           {"values.yaml", "../../../../../../../../etc/passwd", "", `the link "values.yaml" cannot be followed`},
		"out, a directory":        {"templates/x", "/etc", "", `the link "templates/x" cannot be followed`},
		"out, but ignored":        {"more/x", secret, "more/x\n", ""},
		"to itself":               {"more/x", ".", "", "cannot be followed"},
		"nowhere":                 {"more/x", "no", "", `the link "more/x" cannot be followed`},
		"rules that are not read": {"more/x", "v.yaml", "a/**\n", ".helmignore: double-star"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(filepath.Join(dir, "Chart.yaml"), meta)
			write(filepath.Join(dir, "more/v.yaml"), "x: 1\n")
			write(filepath.Join(dir, "templates/t.yaml"), "kind: {{ .Values.x }}\n")
			write(filepath.Join(dir, "templates/.t.yaml"), "{{")
			if c.ignore != "" {
				write(filepath.Join(dir, ".helmignore"), c.ignore)
			}
			if err := os.Symlink(c.target, filepath.Join(dir, c.link)); err != nil {
				t.Fatal(err)
			}
			_, err := helmtemplate.Load(t.Context(), dir, helmtemplate.Limits{})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// lines repeats text.
func lines(n int, text string) string { return strings.Repeat(text, n) }

// Templates that loop or grow end with an error, soon and within a bound of memory.
func TestHostileTemplates(t *testing.T) {
	double := `{{ $x := "0123456789abcdef" }}`
	for name, c := range map[string]struct{ template, want string }{
		"range over a number":          {`{{ range 9000000000000000000 }}{{ end }}`, "rendering takes too long (limit 300ms)"},
		"ranges in ranges":             {`{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ $x := 1 }}{{ end }}{{ end }}{{ end }}`, "rendering takes too long"},
		"a template that calls two":    {lines(40, ``) + chain(40), "rendering takes too long"},
		"templates in themselves":      {`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, "templates in templates (limit 2000)"},
		"includes in themselves":       {`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, "includes itself without end"},
		"two that include each other":  {`{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, "templates in templates (limit 2000)"},
		"tpl in itself":                {`{{ tpl .Values.self . }}`, "templates in templates (limit"},
		"output":                       {`{{ $x := repeat 1000000 "x" }}{{ range until 100 }}{{ $x }}{{ end }}`, "the output of a template has more bytes"},
		"doubling by printf":           {double + lines(40, `{{ $x = printf "%s%s" $x $x }}`), "the result of printf has more bytes"},
		"doubling by print":            {double + lines(40, `{{ $x = print $x $x }}`), "has more bytes"},
		"doubling by cat":              {double + lines(40, `{{ $x = cat $x $x }}`), "has more bytes"},
		"doubling by join":             {double + lines(40, `{{ $x = join $x (list $x $x) }}`), "has more bytes"},
		"doubling by replace":          {double + lines(40, `{{ $x = replace "0" $x $x }}`), "has more bytes"},
		"doubling by regexReplaceAll":  {double + lines(40, `{{ $x = regexReplaceAll "0" $x $x }}`), "has more bytes"},
		"many results of expressions":  {`{{ $x := repeat 100000 "x" }}{{ $x = regexReplaceAll "x" $x (repeat 1000 "$0") }}`, "has more bytes"},
		"doubling by include":          {`{{ define "d" }}{{ . }}{{ . }}{{ end }}` + double + lines(40, `{{ $x = include "d" $x }}`), "has more bytes"},
		"doubling by tpl":              {double + lines(40, `{{ $x = tpl "{{ . }}{{ . }}" $x }}`), "has more bytes"},
		"doubling by concat":           {`{{ $x := list 1 2 3 }}` + lines(60, `{{ $x = concat $x $x }}`), "has more items"},
		"doubling by toJson":           {`{{ $x := dict }}` + lines(60, `{{ $x = dict "a" $x "b" $x }}`) + `{{ toJson $x }}`, "a value that is written out has more bytes or levels"},
		"doubling printed":             {`{{ $x := dict }}` + lines(60, `{{ $x = dict "a" $x "b" $x }}`) + `{{ $x }}`, "a value that is written out has more bytes or levels"},
		"doubling as a key":            {`{{ $x := dict }}` + lines(60, `{{ $x = dict "a" $x "b" $x }}`) + `{{ $y := dict $x 1 }}`, "a value that is written out has more bytes or levels"},
		"doubling as values":           {lines(60, `{{ $_ := set .Values "a" (dict "b" .Values.a "c" .Values.a) }}`) + `{{ .Values.YAML }}`, "a value that is written out has more bytes or levels"},
		"a map in itself":              {`{{ $x := dict }}{{ $_ := set $x "a" $x }}{{ toYaml $x }}`, "a value that is written out has more bytes or levels"},
		"a map in itself, printed":     {`{{ $x := dict }}{{ $_ := set $x "a" $x }}{{ $x }}`, "a value that is written out has more bytes or levels"},
		"a map in itself, copied":      {`{{ $x := dict }}{{ $_ := set $x "a" $x }}{{ $y := deepCopy $x }}`, "a value that is written out has more bytes or levels"},
		"a map in itself, merged":      {`{{ $x := dict }}{{ $_ := set $x "a" $x }}{{ $y := merge (dict "a" (dict)) $x }}`, "a value that is written out has more bytes or levels"},
		"a map in itself, dug":         {`{{ $x := dict }}{{ $_ := set $x "a" $x }}{{ dig "a" "a" "x" $x }}`, "a value that is written out has more bytes or levels"},
		"values in themselves":         {`{{ $_ := set .Values "a" .Values }}{{ .Values.YAML }}`, "a value that is written out has more bytes or levels"},
		"the context in itself":        {`{{ $_ := set . "a" . }}{{ . }}`, "a value that is written out has more bytes or levels"},
		"an error about such":          {`{{ $x := dict }}{{ $_ := set $x "a" $x }}{{ eq $x $x }}`, ""},
		"repeat":                       {`{{ repeat 1000000000 "xxxxxxxxxxxx" }}`, "the result of repeat has more bytes"},
		"repeat, nested":               {`{{ $x := repeat 1000000 "x" }}{{ range until 10000 }}{{ $x = repeat 10 "0123456789abcdef" }}{{ end }}{{ repeat 100000000 $x }}`, "has more bytes"},
		"until":                        {`{{ until 1000000000 }}`, "the result of until has more bytes"},
		"untilStep":                    {`{{ untilStep 0 -2000000000 -1 }}`, "the result of untilStep has more bytes"},
		"seq":                          {`{{ seq 1 1000000000 }}`, "the result of seq has more bytes"},
		"seq of one":                   {`{{ seq 9000000000000000000 }}`, "the result of seq has more bytes"},
		"indent":                       {`{{ indent 1000000000 "a\nb" }}`, "the result of indent has more bytes"},
		"random texts":                 {`{{ randAlphaNum 1000000000 }}`, "the result of randAlphaNum has more bytes"},
		"random bytes":                 {`{{ randBytes 1000000000 }}`, "the result of randBytes has more bytes"},
		"wide numbers":                 {`{{ printf (repeat 100 "%0999999d") 1 }}`, "the result of printf has more bytes"},
		"wide numbers by an argument":  {`{{ printf (repeat 100 "%*d") 999999 1 }}`, "the result of printf has more bytes"},
		"arguments again and again":    {`{{ $x := repeat 1000000 "x" }}{{ printf (repeat 1000 "%[1]s") $x }}`, "the result of printf has more bytes"},
		"wrapWith":                     {`{{ wrapWith 1 (repeat 10000 "x") (repeat 10000 "y ") }}`, "the result of wrapWith has more bytes"},
		"texts that are kept":          {`{{ $l := list }}{{ range until 2000 }}{{ $l = append $l (repeat 1000000 "x") }}{{ end }}`, "its templates make more bytes"},
		"lists that are kept":          {`{{ $l := list }}{{ range until 100000 }}{{ $l = append $l (until 100000) }}{{ end }}`, "its templates make more bytes"},
		"files that are kept":          {`{{ $l := list }}{{ range until 100000 }}{{ $l = append $l $.Files.AsConfig }}{{ end }}`, "rendering takes too long (limit 300ms)"},
		"lines that are kept":          {`{{ $l := list }}{{ range until 100000 }}{{ $l = append $l ($.Files.Lines "big") }}{{ end }}`, "its templates make more bytes"},
		"a file that is kept":          {`{{ $l := list }}{{ range until 100000 }}{{ $l = append $l ($.Files.Get "big") }}{{ end }}`, "its templates make more bytes"},
		"keys":                         {`{{ range until 1000 }}{{ $p := genPrivateKey "rsa" }}{{ end }}`, "rendering takes too long"},
		"an expression that is long":   {`{{ $x := repeat 16000000 "a" }}{{ range until 1000 }}{{ $y := regexMatch "(a?){1000}b" $x }}{{ end }}`, "rendering takes too long"},
		"blocks in blocks":             {lines(200000, `{{ if 1 }}`) + lines(200000, `{{ end }}`), "blocks in blocks (limit 1000)"},
		"blocks in blocks, by else":    {`{{ if 1 }}` + lines(200000, `{{ else if 1 }}`) + `{{ end }}`, "blocks in blocks (limit 1000)"},
		"parentheses":                  {`{{ ` + lines(200000, `(`) + `1` + lines(200000, `)`) + ` }}`, ""},
		"blocks in blocks, by tpl":     {`{{ tpl (print (repeat 200000 "{{if 1}}") (repeat 200000 "{{end}}")) . }}`, "blocks in blocks (limit 1000)"},
		"aliases in YAML of templates": {`{{ fromYaml (print "a: &a [x,x,x,x,x,x,x,x,x]\n" ` + bombText + `) | toYaml | len }}`, ""},
		"JSON in JSON":                 {`{{ $x := "1" }}{{ fromJson (print (repeat 100000 "[") (repeat 100000 "]")) }}`, ""},
		"YAML in YAML":                 {`{{ $x := fromYaml (repeat 100000 "[") }}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			data := pack(t, "c", map[string]string{"Chart.yaml": meta, "values.yaml": "self: '{{ tpl .Values.self . }}'\n", "big": lines(100_000, "line\n"),
				"templates/t.yaml": c.template})
			chart, err := helmtemplate.Parse(t.Context(), data, "c.tgz", helmtemplate.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			start, timeout := time.Now(), time.Minute
			if strings.Contains(c.want, "too long") {
				timeout = 300 * time.Millisecond
			}
			_, err = chart.Render(t.Context(), helmtemplate.Options{Timeout: timeout})
			t.Logf("%s: %v", time.Since(start), err)
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if strings.Contains(c.want, "limit") && fault.ClassOf(err) != fault.Limit {
				t.Errorf("%v has class %v", err, fault.ClassOf(err))
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d MiB of memory", m.Sys>>20)
	if m.Sys > 2<<30 {
		t.Errorf("%d MiB of memory", m.Sys>>20)
	}
}

// chain returns templates of which each calls the next one twice.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`{{ define "` + strings.Repeat("x", i+1) + `" }}{{ template "` + strings.Repeat("x", i+2) + `" }}{{ template "` + strings.Repeat("x", i+2) + `" }}{{ end }}`)
	}
	return b.String() + `{{ define "` + strings.Repeat("x", n+1) + `" }}{{ end }}{{ template "x" }}`
}

// bombText is YAML whose aliases make much of little, as expressions of a template.
const bombText = `"b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n" "f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n" "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n" "h: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n"`

// Values with aliases that make much of little are refused, by their number and by their length.
func TestHostileValues(t *testing.T) {
	for name, values := range map[string]string{
		"number": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
		"length": "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 10_000) + "]\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := helmtemplate.Parse(t.Context(), pack(t, "c", map[string]string{"Chart.yaml": meta, "values.yaml": values}), "c.tgz", helmtemplate.Limits{})
			if err == nil || !strings.Contains(err.Error(), "values.yaml: ") {
				t.Error(err)
			}
		})
	}
}

// The end of the caller's context ends the rendering, with its own error.
func TestCanceled(t *testing.T) {
	c, err := helmtemplate.Parse(t.Context(), pack(t, "c", map[string]string{"Chart.yaml": meta, "templates/t.yaml": "{{ range 9000000000000000000 }}{{ end }}"}), "c.tgz", helmtemplate.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Render(ctx, helmtemplate.Options{}); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, helmtemplate.ErrTime) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(archive(f))
	f.Add(pack(f, "c", map[string]string{"Chart.yaml": meta, "values.yaml": "a: 1\n", "templates/t.yaml": "a: {{ .Values.a }}", "charts/x/Chart.yaml": meta}))
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := helmtemplate.Limits{Total: 1 << 20, File: 1 << 18, Files: 100, Depth: 3}
		c, err := helmtemplate.Parse(t.Context(), data, "c.tgz", limits)
		if err == nil {
			_, _ = c.Render(t.Context(), helmtemplate.Options{Timeout: time.Second})
		}
	})
}

func FuzzRender(f *testing.F) {
	for line := range strings.Lines(expressions) {
		f.Add(line, "a: 1\n")
	}
	f.Fuzz(func(t *testing.T, template, values string) {
		c, err := helmtemplate.Parse(t.Context(), pack(t, "c", map[string]string{"Chart.yaml": meta, "values.yaml": values, "templates/t.yaml": template}), "c.tgz",
			helmtemplate.Limits{})
		if err == nil {
			_, _ = c.Render(t.Context(), helmtemplate.Options{Timeout: time.Second})
		}
	})
}
