package bundle_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// check reads a bundle with one file of the fuzzer and checks invariants that hold for any content.
func check(t *testing.T, file string, text []byte) {
	files := sound(map[string]string{file: string(text)})
	b, err := bundle.Read(t.Context(), files, bundle.ReadOptions{})
	if err != nil {
		fatal := false
		for _, p := range b.Problems {
			fatal = fatal || p.Severity == bundle.SeverityError
		}
		if !fatal {
			t.Fatalf("refused without a problem: %v", err)
		}
		return
	}
	made, err := b.Blob("example.test/i:v1")
	if err != nil {
		return
	}
	out := rendered(t, made, declcfg.FormatJSON)
	if !json.Valid(out) {
		t.Fatalf("no JSON: %s", out)
	}
	for _, p := range made.Properties {
		if p.Type == "" || len(p.Value) == 0 {
			t.Fatalf("a property without type or value: %q %q", p.Type, p.Value)
		}
	}
	rendered(t, made, declcfg.FormatYAML)
	again := blob(t, read(t, files, bundle.ReadOptions{}), "example.test/i:v1")
	if !bytes.Equal(out, rendered(t, again, declcfg.FormatJSON)) {
		t.Fatal("two readings give two blobs")
	}
}

// seeds adds the files of a kind from the bundles in testdata.
func seeds(f *testing.F, pattern string) {
	names, err := filepath.Glob(filepath.Join(part, "bundles", "*", "*", pattern))
	if err != nil || len(names) == 0 {
		f.Fatalf("no seeds in %q: %v", pattern, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
}

func FuzzAnnotations(f *testing.F) {
	seeds(f, "metadata/annotations.yaml")
	f.Add(
		[]byte(
			"annotations: {operators.operatorframework.io.bundle.package.v1: a, " +
				"operators.operatorframework.io.bundle.manifests.v1: ../x}"))
	f.Fuzz(func(t *testing.T, text []byte) { check(t, "metadata/annotations.yaml", text) })
}

func FuzzDependenciesAndProperties(f *testing.F) {
	seeds(f, "metadata/[dp]*.yaml")
	f.Add(
		[]byte(
			"properties: [{type: a, value: 1.0}]\ndependencies: [{type: olm.package, value: {packageName: a, " +
				"version: 1}}]"))
	f.Fuzz(func(t *testing.T, text []byte) { check(t, "metadata/dependencies.yaml", text) })
}

func FuzzCSV(f *testing.F) {
	seeds(f, "manifests/*clusterserviceversion.yaml")
	f.Add([]byte(soundCSV + "  customresourcedefinitions: {owned: [{name: a.b}]}\n  install: {strategy: deployment}\n"))
	f.Fuzz(func(t *testing.T, text []byte) { check(t, "manifests/csv.yaml", text) })
}
