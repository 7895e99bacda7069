package change_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
)

// TestOwnEdges shows the columns of a database after edits. The bundles have no manifests, so that the columns are the
// only source.
func TestOwnEdges(t *testing.T) {
	chain := []string{"p 1.0.0 @a =a", "p 1.1.0 >1.0.0 @a", "p 1.2.0 >1.1.0 @a"}
	add := func(text ...string) change.Edit {
		return adding(edittest.Additions(t, text...), edit.AddOptions{SubstitutesFor: true})
	}
	for _, c := range []struct {
		what  string
		edits []change.Edit
		want  string // VERSION >REPLACES !SKIPS ^SUBSTITUTESFOR
	}{
		{"added", nil, "1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0"},
		{"another package is added", []change.Edit{add("q 1.0.0 @a")}, "1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0"},
		{"a bundle that is only skipped keeps them", []change.Edit{add("p 1.3.0 >1.0.0 !1.1.0 !1.2.0 @a")},
			"1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0, 1.3.0 >1.0.0 !1.1.0 !1.2.0"},
		{"and has them again when a channel leads to it",
			[]change.Edit{add("p 1.3.0 >1.0.0 !1.1.0 !1.2.0 @a"), add("p 1.4.0 >1.2.0 @b")},
			"1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0, 1.3.0 >1.0.0 !1.1.0 !1.2.0, 1.4.0 >1.2.0"},
		{"a deprecated bundle keeps them",
			[]change.Edit{pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
				return edit.DeprecateTruncate(c, []string{"p/p.v1.1.0"}, edit.TruncateOptions{})
			})}, "1.1.0 >1.0.0, 1.2.0 >1.1.0"},
		{"a substitute changes those that lead to what it substitutes for",
			[]change.Edit{add("p 1.1.0+1 >1.0.0 @a ^1.1.0")},
			"1.0.0, 1.1.0 >1.0.0, 1.1.0+1 >1.0.0 !1.1.0 ^1.1.0, 1.2.0 >1.1.0+1"},
		{"what filtering gives other edges says what the channels do",
			[]change.Edit{pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
				return edit.Filter(c, []edit.Selection{{Package: "p", Versions: "!=1.1.0"}}, edit.FilterOptions{})
			})}, "1.0.0, 1.2.0 >1.0.0 !1.1.0"},
		{"in mode semver they say what the channels do",
			[]change.Edit{adding(edittest.Additions(t, "p 1.3.0 >1.0.0 @a", "p 1.1.5 @a"),
				edit.AddOptions{Mode: edit.SemVer})},
			"1.0.0, 1.1.0 >1.0.0, 1.1.5 >1.1.0, 1.2.0 >1.1.5, 1.3.0 >1.2.0"},
		{"a bundle that is overwritten says what the new one does",
			[]change.Edit{adding(edittest.Additions(t, "p 1.2.0 >1.0.0 !1.1.0 @a %img/new"),
				edit.AddOptions{OverwriteLatest: true})},
			"1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.0.0 !1.1.0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index.db")
			for _, e := range append([]change.Edit{add(chain...)}, c.edits...) {
				if _, err := inPlace(path, change.Database, e); err != nil {
					t.Fatal(err)
				}
			}
			if got := declaredEdges(t, path); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// declaredEdges formats the columns of the bundles of package p, sorted by version.
func declaredEdges(t testing.TB, path string) string {
	t.Helper()
	var out []string
	for _, line := range columns(t, path) {
		name, rest, _ := strings.Cut(line, " replaces ")
		if !strings.HasPrefix(name, "p.v") {
			continue
		}
		replaces, rest, _ := strings.Cut(rest, " skips [")
		skips, substitutes, _ := strings.Cut(rest, "] substitutes for ")
		text := name
		if replaces != "" {
			text += " >" + replaces
		}
		for _, s := range strings.Fields(skips) {
			text += " !" + s
		}
		if substitutes != "" {
			text += " ^" + substitutes
		}
		out = append(out, strings.ReplaceAll(text, "p.v", ""))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
