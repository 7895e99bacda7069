package change_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// asEdit converts a recorded step to an edit.
func asEdit(t testing.TB, step edittest.Step) change.Edit {
	if step.Stranded {
		return change.PruneStranded()
	}
	e := change.Edit{Whole: []string{}}
	if step.Packages != nil {
		e.Manifests = step.Packages(t)
	}
	e.Apply = func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		return step.Do(t, s.Catalog, edittest.Known{Origins: s.Origins, Manifests: s.Manifests})
	}
	return e
}

// places returns the two forms of a catalog: a database and a directory.
func places(t testing.TB, database string) []string {
	t.Helper()
	if database == "" {
		dir := t.TempDir()
		return []string{filepath.Join(dir, "index.db"), filepath.Join(dir, "catalog")}
	}
	return []string{database, migrated(t, database)}
}

var kinds = []change.Kind{change.Database, change.Directory}

// inPlace applies an edit to a path that may not exist.
func inPlace(at string, kind change.Kind, e change.Edit) (*change.Result, error) {
	return e.InPlace(context.Background(), at, change.Options{Create: true, New: kind})
}

// TestRecordedSequences applies every recorded sequence to a database and a directory: both have opm's graph at the
// end, and agree after each step.
func TestRecordedSequences(t *testing.T) {
	for _, s := range edittest.Sequences {
		t.Run(s.Database, func(t *testing.T) {
			t.Parallel()
			recorded.All(t) // or skips
			from := ""
			if s.From != "" {
				from = recorded.All(t).Database(t, s.From)
			}
			at := places(t, from)
			var ours [2]*declcfg.Catalog
			for i, step := range s.Steps {
				for j, kind := range kinds {
					r, err := inPlace(at[j], kind, asEdit(t, step))
					if step.Kind != nil {
						var e *edit.Error
						if !errors.As(err, &e) || !errors.Is(err, step.Kind) || !strings.Contains(err.Error(),
							step.Fail) || e.ExitStatus() != step.Exit || r != nil {
							t.Errorf("step %d: %s: got %v", i, kind, err)
						}
						continue
					}
					if err != nil {
						t.Fatalf("step %d: %s: %v", i, kind, err)
					}
					if r.Kind != kind || r.Account == nil {
						t.Errorf("step %d: got %+v", i, r)
					}
					ours[j] = read(t, at[j])
					if err := ours[j].Validate(); err != nil {
						t.Fatalf("step %d: %s: %v", i, kind, err)
					}
				}
				if d := different(ours[0], ours[1]); d != "" {
					t.Fatalf("step %d:\n%s", i, d)
				}
			}
			for j, kind := range kinds {
				if ours[j] == nil {
					ours[j] = read(t, at[j]) // every step failed
				}
				want := edittest.DatabaseOf(t, recorded.All(t), s.Database)
				for _, part := range s.Contains {
					if got := edittest.Show(ours[j]); !strings.Contains(got, part) {
						t.Errorf("%s: %s\nis not in\n%s", kind, part, got)
					}
				}
				if s.Compare != nil {
					s.Compare(want, ours[j])
				}
				if d := edittest.Differences(edittest.Lines(ours[j], !s.Objects),
					edittest.Lines(want, !s.Objects)); d != "" {
					t.Errorf("%s: %s\n%s", kind, s.Why, d)
				}
			}
		})
	}
}

func orEmpty(c *declcfg.Catalog) *declcfg.Catalog {
	if c == nil {
		return &declcfg.Catalog{}
	}
	return c
}
