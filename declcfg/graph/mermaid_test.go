package graph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// mermaidOf returns the drawing of a catalog.
func mermaidOf(t testing.TB, c *declcfg.Catalog, o MermaidOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := o.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// fromDB reads a recorded database.
func fromDB(t testing.TB, all recorded.Collection, name string) *declcfg.Catalog {
	t.Helper()
	db, err := sqlite.Open(context.Background(), all.Database(t, name), sqlite.Options{Compat: sqlite.CompatOPM})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := &declcfg.Catalog{}
	for blob, err := range db.Blobs(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := blob.(*declcfg.Bundle); ok {
			b.Reduce()
		}
		c.Add(blob)
	}
	return c
}

// fromDir reads a catalog directory.
func fromDir(t testing.TB, dir string) (*declcfg.Catalog, error) {
	t.Helper()
	return declcfg.Load(context.Background(), os.DirFS(dir), declcfg.LoadOptions{Skeleton: true})
}

// sameDrawing compares with opm's output. The class lines come from a Go map in opm and have no order.
func sameDrawing(t *testing.T, got, want string) {
	t.Helper()
	sorted := func(s string) []string {
		lines := strings.Split(s, "\n")
		first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "class ") })
		if first >= 0 {
			last := first
			for last < len(lines) && strings.HasPrefix(lines[last], "class ") {
				last++
			}
			slices.Sort(lines[first:last])
		}
		return lines
	}
	g, w := sorted(got), sorted(want)
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("line %d: got\n%s\nwant\n%s", i+1, at(g, i), at(w, i))
		}
	}
}

var linkNumbers = regexp.MustCompile(`(?m)^linkStyle [0-9,]+`)

// countOnly replaces the numbers of marked links by their count: if several packages have channels with the same name,
// opm's numbers depend on the order in which it happens to read files.
func countOnly(drawing string) string {
	return linkNumbers.ReplaceAllStringFunc(drawing, func(s string) string {
		return fmt.Sprintf("linkStyle of %d", strings.Count(s, ",")+1)
	})
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

// Recorded databases are drawn as opm draws them.
func TestMermaidOfDatabases(t *testing.T) {
	check := func(t *testing.T, all recorded.Collection) {
		for _, name := range all.Databases(t) {
			golden := "golden/" + name + "/render-graph"
			if !all.Has(golden + ".mmd") {
				continue
			}
			t.Run(name, func(t *testing.T) {
				c := fromDB(t, all, name)
				sameDrawing(t, mermaidOf(t, c, MermaidOptions{}), string(all.File(t, golden+".mmd")))
				if all.Has(golden + "-v0.mmd") {
					got, want := mermaidOf(t, c,
						MermaidOptions{V0Semantics: true}), string(all.File(t, golden+"-v0.mmd"))
					if name == "medium" {
						got, want = countOnly(got), countOnly(want)
					}
					sameDrawing(t, got, want)
				}
			})
		}
	}
	t.Run("part", func(t *testing.T) { check(t, recorded.Part(t)) })
	t.Run("all", func(t *testing.T) { check(t, recorded.All(t)) })
}

// Recorded catalogs, valid and not, are drawn as opm draws them.
func TestMermaidOfCatalogs(t *testing.T) {
	check := func(t *testing.T, root, golden string) {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if name == "ok-bom" || name == "bad-empty-dir" {
				continue // refused by every command and not in the collection
			}
			t.Run(name, func(t *testing.T) {
				// Nothing is recorded if opm fails.
				want, err := os.ReadFile(filepath.Join(golden, name, "graph.mmd"))
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				c, err := fromDir(t, filepath.Join(root, name))
				var b bytes.Buffer
				if err == nil {
					err = MermaidOptions{}.Write(&b, c)
				}
				if (len(want) == 0) != (err != nil) {
					t.Fatalf("error %v, opm wrote %d bytes", err, len(want))
				}
				if err == nil {
					sameDrawing(t, b.String(), string(want))
				}
			})
		}
	}
	t.Run("part", func(t *testing.T) {
		check(t, "../../testdata/oracle/fbc-cases", "../../testdata/oracle/golden-fbc-cases")
	})
	t.Run("all", func(t *testing.T) {
		all := string(recorded.All(t))
		check(t, filepath.Join(all, "fbc-cases"), filepath.Join(all, "golden-fbc-cases"))
	})
}

func TestMermaidOfMini(t *testing.T) {
	all := recorded.All(t)
	c, err := fromDir(t, filepath.Join(string(all), "fbc", "mini"))
	if err != nil {
		t.Fatal(err)
	}
	sameDrawing(t, mermaidOf(t, c, MermaidOptions{}), string(all.File(t, "golden-fbc/mini/render-graph.mmd")))
	sameDrawing(t, mermaidOf(t, c, MermaidOptions{V0Semantics: true}),
		string(all.File(t, "golden-fbc/mini/render-graph-v0.mmd")))
	small := fromDB(t, all, "small")
	sameDrawing(t, mermaidOf(t, small, MermaidOptions{Package: "etcd"}),
		string(all.File(t, "golden-misc/alpha-render-graph-pkg.mmd")))
	sameDrawing(t, mermaidOf(t, small,
		MermaidOptions{Package: "silicom-sts-operator", MinimumEdge: "silicom-sts-operator.v0.0.3"}),
		string(all.File(t, "golden-misc/alpha-render-graph-min.mmd")))
	err = MermaidOptions{MinimumEdge: "nothing"}.Write(&bytes.Buffer{}, small)
	if err == nil || err.Error() != `unknown minimum edge name: "nothing"` {
		t.Error(err)
	}
}

func TestMermaidLimit(t *testing.T) {
	c, err := fromDir(t, "../../testdata/fbc/mini")
	if err != nil {
		t.Fatal(err)
	}
	for _, v0 := range []bool{false, true} {
		if err := (MermaidOptions{MaxEdges: 5, V0Semantics: v0}).Write(&bytes.Buffer{}, c); !errors.Is(err,
			declcfg.ErrLimit) {
			t.Errorf("v0 %v: %v", v0, err)
		}
	}
}

// A repaired drawing numbers links in the order of the text, as mermaid does, and keeps deprecations in their packages.
func TestMermaidRepair(t *testing.T) {
	c := &declcfg.Catalog{}
	for _, pkg := range []string{"a", "b"} {
		c.Packages = append(c.Packages, declcfg.Package{Name: pkg})
		for i, name := range []string{"v1", "v2", "v3"} {
			c.Bundles = append(c.Bundles, declcfg.Bundle{Package: pkg, Name: name, Properties: []declcfg.Property{
				{Type: declcfg.PropertyPackage,
					Value: fmt.Appendf(nil, `{"packageName":%q,"version":"%d.0.0"}`, pkg, i+1)}}})
		}
		c.Deprecations = append(c.Deprecations,
			declcfg.Deprecations{Package: pkg,
				Entries: []declcfg.DeprecationEntry{{Reference: declcfg.Reference{Schema: declcfg.SchemaPackage}}}})
	}
	c.Deprecations[0].Entries = append(c.Deprecations[0].Entries,
		declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: declcfg.SchemaBundle, Name: "v2"}})
	plain := []declcfg.ChannelEntry{{Name: "v1"}, {Name: "v2", Replaces: "v1"}}
	c.Channels = []declcfg.Channel{
		{Package: "a", Name: "z", Entries: []declcfg.ChannelEntry{{Name: "v1"}, {Name: "v2", Skips: []string{"v1"}},
			{Name: "v3", Skips: []string{"v1", "v2"}}}},
		{Package: "b", Name: "c", Entries: plain},
	}
	want := map[bool][]string{
		false: {"style a fill:#989695", "class b-c-v2 deprecated", "class a-z-v1 skipped",
			"class a-z-v2 deprecatedskipped", "linkStyle 3 stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;"},
		true: {"style a fill:#989695", "style b fill:#989695", "class a-z-v1 skipped",
			"class a-z-v2 deprecatedskipped", "linkStyle 2 stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;"},
	}
	for repair, lines := range want {
		drawing := mermaidOf(t, c, MermaidOptions{V0Semantics: true, Repair: repair})
		_, styles, ok := strings.Cut(drawing, "\nstyle ")
		if got := "style " + strings.TrimSpace(styles); !ok || got != strings.Join(lines, "\n") {
			t.Errorf("repair %v: got\n%s\nwant\n%s", repair, got, strings.Join(lines, "\n"))
		}
	}
}

// As in opm, edges other than skips to a skipped bundle are marked with OLM v0 semantics.
func TestV0SemanticsOfEdgesToSkippedBundles(t *testing.T) {
	c := &declcfg.Catalog{
		Packages: []declcfg.Package{{Name: "foo"}},
		Channels: []declcfg.Channel{{Package: "foo", Name: "stable", Entries: []declcfg.ChannelEntry{
			{Name: "foo.v2.0.0", Skips: []string{"foo.v1.0.0"}},
			{Name: "foo.v1.0.0", Replaces: "foo.v0.1.0", SkipRange: ">=0.0.0 <99.0.0"},
		}}},
	}
	for _, v := range []string{"2.0.0", "1.0.0"} {
		c.Bundles = append(c.Bundles, declcfg.Bundle{Package: "foo", Name: "foo.v" + v, Properties: []declcfg.Property{
			{Type: declcfg.PropertyPackage, Value: []byte(`{"packageName":"foo","version":"` + v + `"}`)}}})
	}
	for _, repair := range []bool{false, true} {
		if drawing := mermaidOf(t, c, MermaidOptions{V0Semantics: true, Repair: repair}); !strings.Contains(drawing,
			"\nlinkStyle 1,2,3 stroke") {
			t.Errorf("repair %v: %s", repair, drawing)
		}
	}
}
