package read_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// templateAnswers are the commands recorded for every template, by the file of the answer.
var templateAnswers = map[string]string{
	"auto.yaml":      "-o yaml",
	"typed.json":     "TYPE -o json",
	"csvmeta.yaml":   "TYPE -o yaml --migrate-level bundle-object-to-csv-metadata",
	"mermaid.mmd":    "TYPE -o mermaid",
	"wrongtype.yaml": "WRONG -o yaml",
}

// templateTypes returns the type under which a recorded template was rendered, and a wrong one.
func templateTypes(name string) (typ, wrong string) {
	switch kind, _, _ := strings.Cut(name, "-"); kind {
	case "basic":
		return "basic", "semver"
	case "sub":
		return "substitutes", "basic"
	}
	return "semver", "basic"
}

// Compare with every recorded answer of opm to templates.
func TestOpmRenderTemplate(t *testing.T) {
	c, want := recorded.All(t), 130
	registry := testregistry.Recorded(t)
	conf := registry.RegistriesConf(t, testregistry.RecordedHost)
	files, err := filepath.Glob(filepath.Join(string(c), "templates", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		for answer, line := range templateAnswers {
			golden := "golden-templates/" + name + "/" + answer
			stderr := strings.TrimSuffix(golden, filepath.Ext(golden)) + ".stderr"
			if !c.Has(golden) && !c.Has(stderr) {
				continue
			}
			n++
			t.Run(name+"/"+answer, func(t *testing.T) {
				typ, wrong := templateTypes(name)
				args := "alpha render-template " + strings.NewReplacer("TYPE", typ+" "+file, "WRONG",
					wrong+" "+file).Replace(line)
				if !strings.Contains(args, file) {
					args += " " + file
				}
				got := clitest.RunProgram(t, ".", "opm",
					strings.Fields(args+" --use-http --no-cache --registries-conf "+conf)...)
				if c.Has(stderr) {
					if got.Status != 1 || got.Stdout != "" {
						t.Errorf("status %d, standard output %q", got.Status, got.Stdout)
					}
					compareTemplateError(t, got.Stderr, string(c.File(t, stderr)))
					return
				}
				if want := string(c.File(t, golden)); got.Status != 0 || got.Stdout != want {
					t.Errorf("status %d, %d bytes instead of %d\n%s", got.Status, len(got.Stdout), len(want),
						got.Stderr)
				}
			})
		}
	}
	if n != want {
		t.Errorf("%d answers were compared, want %d", n, want)
	}
}

// compareTemplateError compares the text before the usage, without messages of a registry library.
func compareTemplateError(t *testing.T, got, want string) {
	t.Helper()
	message := func(text string) string {
		text, _, _ = strings.Cut(text, "\nUsage:")
		text, _, _ = strings.Cut(text, ": initializing source")
		return strings.Join(strings.Fields(text), " ")
	}
	if !strings.HasPrefix(message(got), message(want)) {
		t.Errorf("got %s\nwant %s", message(got), message(want))
	}
}

// templateDir returns a directory with the files of the examples.
func templateDir(t *testing.T) string {
	t.Helper()
	dir := clitest.WorkDir(t)
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	clitest.ExampleTemplates(t, dir)
	return dir
}

// render reads the output of convert from standard input; opm's names run the same commands.
func TestTemplatePipe(t *testing.T) {
	dir := templateDir(t)
	direct := clitest.RunProgram(t, dir, "bindery", "template", "render", "template.yaml", "-o", "yaml")
	if direct.Status != 0 {
		t.Fatalf("%+v", direct)
	}
	pipe := func(program, input string, args ...string) string {
		t.Helper()
		cmd := clitest.Command(dir, program, args...)
		cmd.Stdin = strings.NewReader(input)
		got := clitest.Finish(t, cmd)
		if got.Status != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		return got.Stdout
	}
	text := clitest.ReadFile(t, filepath.Join(dir, "template.yaml"))
	for _, args := range []string{"template render -o yaml", "template render basic -o yaml",
		"template render basic - -o yaml", "render-template -o yaml", "alpha render-template basic -o yaml"} {
		if got := pipe("bindery", text, strings.Fields(args)...); got != direct.Stdout {
			t.Errorf("%s differs", args)
		}
	}
	if got := pipe("bindery", "schema: olm.template.basic\nentires: []\n", "template", "render",
		"--compat=opm"); got != "" {
		t.Errorf("got %s", got)
	}
	converted := pipe("bindery", clitest.ReadFile(t, filepath.Join(dir, "cat", "catalog.json")), "template", "convert", "basic",
		"-o", "yaml")
	if fromDir := clitest.RunProgram(t, dir, "bindery", "template", "convert", "basic", "cat", "-o",
		"yaml"); fromDir.Stdout != converted {
		t.Errorf("got %s from the directory and %s from the file", fromDir.Stdout, converted)
	}
	if got := pipe("opm", "", "alpha", "convert-template", "basic", "cat", "-o", "yaml"); got != converted+"\n" {
		t.Errorf("opm: %q", got)
	}
	drawn := pipe("bindery", text, "template", "render", "-o", "mermaid")
	if !strings.HasPrefix(drawn, "graph LR\n") || !strings.Contains(drawn, "etcdoperator.v0.9.4") {
		t.Errorf("got %s", drawn)
	}
}
