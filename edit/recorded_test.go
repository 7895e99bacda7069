package edit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// database reads the catalog of a recorded database.
func database(t *testing.T, name string) *declcfg.Catalog {
	return databaseOf(t, recorded.All(t), name)
}

func TestRecordedSequences(t *testing.T) {
	for _, s := range edittest.Sequences {
		t.Run(s.Database, func(t *testing.T) {
			t.Parallel()
			want := database(t, s.Database)
			c := &declcfg.Catalog{}
			if s.From != "" {
				c = database(t, s.From)
			}
			for i, step := range s.Steps {
				before := show(c)
				next, account, err := step.Do(t, c, edittest.Known{})
				if after := show(c); after != before {
					t.Fatalf("step %d changed its input:\n%s", i, after)
				}
				if step.Kind != nil {
					var e *edit.Error
					if !errors.As(err, &e) || !errors.Is(err, step.Kind) || !strings.Contains(err.Error(), step.Fail) ||
						e.ExitStatus() != step.Exit || next != nil || account != nil {
						t.Errorf("step %d: got %v", i, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if account == nil {
					t.Fatalf("step %d: no account", i)
				}
				c = next
				if err := c.Validate(); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			for _, part := range s.Contains {
				if got := show(c); !strings.Contains(got, part) {
					t.Errorf("%s\nis not in\n%s", part, got)
				}
			}
			if s.Compare != nil {
				s.Compare(want, c)
			}
			if d := differences(lines(c, !s.Objects), lines(want, !s.Objects)); d != "" {
				t.Errorf("%s\n%s", s.Why, d)
			}
		})
	}
}
