package bundle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/bundle"
)

// within fails if something takes longer than a bundle of this size should, with much room for slow machines.
func within(t *testing.T, most time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > most {
		t.Errorf("took %v", took)
	}
}

func TestManyVersionsTakeLinearTime(t *testing.T) {
	var versions, owned strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&versions, "\n  - name: v%d", i)
		fmt.Fprintf(&owned, "\n    - {name: as.g.io, version: v%d, kind: A}", i)
	}
	files := csvWith("  customresourcedefinitions:\n    owned:" + owned.String() + "\n")
	files["manifests/crd.yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.g.io}\nspec:\n  group: g.io\n  names: {kind: A, plural: as}\n  versions:" + versions.String() + "\n"
	within(t, 10*time.Second, func() {
		if made := blob(t, read(t, sound(files), bundle.ReadOptions{}), ""); len(made.Properties) != 50_000+4 {
			t.Errorf("%d properties", len(made.Properties))
		}
	})
}

func TestManyProblemsAreNotAllTold(t *testing.T) {
	told := 0
	b := read(t, sound(map[string]string{"metadata/dependencies.yaml": "dependencies: [" + strings.Repeat("1,", 100_000) + "1]"}),
		bundle.ReadOptions{Warn: func(bundle.Problem) { told++ }})
	if len(b.Problems) != 1000 || told != 1000 || !strings.Contains(b.Problems[999].Message, "further ones are not told") {
		t.Errorf("%d problems, %d told", len(b.Problems), told)
	}
	_, err := bundle.Read(t.Context(), sound(csvWith("  customresourcedefinitions:\n    required: ["+strings.Repeat("{name: a},", 50_000)+"]\n")), bundle.ReadOptions{})
	if lines := strings.Count(fmt.Sprint(err), "\n") + 1; lines != 100 {
		t.Errorf("an error of %d lines", lines)
	}
}

func TestSmallDocumentsMayNotGrowTogether(t *testing.T) {
	// Each is within the limit of what a document may become.
	text := "kind: A\na: &a " + strings.Repeat("x", 4000) + "\nb: [" + strings.Repeat("*a,", 200) + "]\n"
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("manifests/x%d.yaml", i)] = text
	}
	_, err := bundle.Read(t.Context(), sound(files), bundle.ReadOptions{Limits: bundle.Limits{Total: 4 << 20}})
	if !errors.Is(err, bundle.ErrLimit) || !strings.Contains(err.Error(), "the objects of the bundle have more than 4194304 bytes") {
		t.Errorf("error %v", err)
	}
}

func TestFractionsOfLargeExponentsTakeLinearTime(t *testing.T) {
	text := `{"kind":"A","a":[` + strings.Repeat("1e-999999,0.1e300,1e-9999999999999,", 100_000) + "1]}"
	within(t, 10*time.Second, func() {
		blob(t, read(t, sound(map[string]string{"manifests/x.json": text}), bundle.ReadOptions{}), "")
	})
}
