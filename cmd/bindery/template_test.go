package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/recorded"
	"github.com/operator-bindery/bindery/internal/testregistry"
)

// templateAnswers are the commands that were recorded for every template, by the file of the answer.
var templateAnswers = map[string]string{
	"auto.yaml":      "-o yaml",
	"typed.json":     "TYPE -o json",
	"csvmeta.yaml":   "TYPE -o yaml --migrate-level bundle-object-to-csv-metadata",
	"mermaid.mmd":    "TYPE -o mermaid",
	"wrongtype.yaml": "WRONG -o yaml",
}

// templateTypes are the type under which a recorded template was rendered, and the wrong one.
func templateTypes(name string) (typ, wrong string) {
	switch kind, _, _ := strings.Cut(name, "-"); kind {
	case "basic":
		return "basic", "semver"
	case "sub":
		return "substitutes", "basic"
	}
	return "semver", "basic"
}

// Every answer that opm gave to the recorded templates, from the whole collection if that is there.
func TestOpmRenderTemplate(t *testing.T) {
	c, want := recorded.Collection("../../testdata/templates"), 58
	registry := testregistry.New(t)
	if _, err := os.Stat("../../../shared/oracle"); err == nil {
		c, want = recorded.All(t), 130
		registry = testregistry.Recorded(t)
	} else {
		files, err := testregistry.ReadTar(filepath.Join(string(c), "images.oci.tar"))
		if err != nil {
			t.Fatal(err)
		}
		registry.AddLayout(t, files)
	}
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
				args := "alpha render-template " + strings.NewReplacer("TYPE", typ+" "+file, "WRONG", wrong+" "+file).Replace(line)
				if !strings.Contains(args, file) {
					args += " " + file
				}
				got := runProgram(t, ".", "opm", strings.Fields(args+" --use-http --no-cache --registries-conf "+conf)...)
				if c.Has(stderr) {
					if got.status != 1 || got.stdout != "" {
						t.Errorf("status %d, standard output %q", got.status, got.stdout)
					}
					compareTemplateError(t, got.stderr, string(c.File(t, stderr)))
					return
				}
				if want := string(c.File(t, golden)); got.status != 0 || got.stdout != want {
					t.Errorf("status %d, %d bytes instead of %d\n%s", got.status, len(got.stdout), len(want), got.stderr)
				}
			})
		}
	}
	if n != want {
		t.Errorf("%d answers were compared, want %d", n, want)
	}
}

// compareTemplateError compares what comes before the usage. What a registry's library says is not compared.
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
