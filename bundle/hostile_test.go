package bundle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/testing/cputime"
)

// linear fails if eight times the input takes much more than eight times the processor time. read prepares a bundle of
// n parts and returns the function to measure.
func linear(t *testing.T, n int, read func(n int) func()) {
	t.Helper()
	if ratio := cputime.Ratio(read(n), read(8*n)); ratio > 24 {
		t.Errorf("eight times the parts take %.1f times as long", ratio)
	}
}

func TestManyVersionsTakeLinearTime(t *testing.T) {
	linear(t, 5_000, func(n int) func() {
		var versions, owned strings.Builder
		for i := range n {
			fmt.Fprintf(&versions, "\n  - name: v%d", i)
			fmt.Fprintf(&owned, "\n    - {name: as.g.io, version: v%d, kind: A}", i)
		}
		files := csvWith("  customresourcedefinitions:\n    owned:" + owned.String() + "\n")
		files["manifests/crd.yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: " +
			"CustomResourceDefinition\nmetadata: {name: as.g.io}\nspec:\n  group: g.io\n  names: {kind: A, plural: " +
			"as}\n  versions:" + versions.String() + "\n"
		return func() {
			if made := blob(t, read(t, sound(files), bundle.ReadOptions{}), ""); len(made.Properties) != n+4 {
				t.Errorf("%d properties", len(made.Properties))
			}
		}
	})
}

func TestManyProblemsAreNotAllTold(t *testing.T) {
	told := 0
	b := read(t,
		sound(
			map[string]string{"metadata/dependencies.yaml": "dependencies: [" + strings.Repeat("1,", 100_000) + "1]"}),
		bundle.ReadOptions{Warn: func(bundle.Problem) { told++ }})
	if len(b.Problems) != 1000 || told != 1000 || !strings.Contains(b.Problems[999].Message,
		"further ones are not told") {
		t.Errorf("%d problems, %d told", len(b.Problems), told)
	}
	_, err := bundle.Read(t.Context(),
		sound(csvWith("  customresourcedefinitions:\n    required: ["+strings.Repeat("{name: a},", 50_000)+"]\n")),
		bundle.ReadOptions{})
	text := fmt.Sprint(err)
	if lines := strings.Count(text, "\n") + 1; lines != 101 || !strings.HasSuffix(text, "\n... and 49900 more problems") {
		t.Errorf("an error of %d lines: %s", lines, text[strings.LastIndex(text, "\n")+1:])
	}
}

func TestSmallDocumentsMayNotGrowTogether(t *testing.T) {
	// Each document is within the limit of expansion.
	text := "kind: A\na: &a " + strings.Repeat("x", 4000) + "\nb: [" + strings.Repeat("*a,", 200) + "]\n"
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("manifests/x%d.yaml", i)] = text
	}
	_, err := bundle.Read(t.Context(), sound(files), bundle.ReadOptions{Limits: bundle.Limits{Total: 4 << 20}})
	if !errors.Is(err, bundle.ErrLimit) || !strings.Contains(err.Error(),
		"the objects of the bundle have more than 4194304 bytes") {
		t.Errorf("error %v", err)
	}
}

func TestFractionsOfLargeExponentsTakeLinearTime(t *testing.T) {
	linear(t, 10_000, func(n int) func() {
		text := `{"kind":"A","a":[` + strings.Repeat("1e-999999,0.1e300,1e-9999999999999,", n) + "1]}"
		return func() { blob(t, read(t, sound(map[string]string{"manifests/x.json": text}), bundle.ReadOptions{}), "") }
	})
}
