package edit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/edit"
)

// takeOutCatalog is a package with two channels that share their upper bundles, and one with a single bundle.
var takeOutCatalog = []string{
	"a = stable",
	"a/fast: 1.1.0, 1.2.0 >1.1.0",
	"a/stable: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0 !1.0.7, 1.3.0 >1.2.0 !1.0.5",
	"a ? fast gone soon",
	"a ? 1.3.0 faulty",
	"b = only",
	"b/only: 1.0.0",
}

func TestTakeOut(t *testing.T) {
	in := func(pkg, channel, version string) edit.Item {
		if version != "" {
			version = pkg + ".v" + version
		}
		return edit.Item{Package: pkg, Channel: channel, Bundle: version}
	}
	for name, test := range map[string]struct {
		items  []edit.Item
		demote bool
		want   []string // the catalog with these lines in place of those with the same start; "-" removes a line
		err    error
		says   string
	}{
		"a channel: bundles of other channels stay": {
			items: []edit.Item{in("a", "fast", "")},
			want:  []string{"-a/fast", "-a ? fast"},
		},
		"a channel: bundles of no other channel go": {
			items: []edit.Item{in("a", "stable", "")},
			want:  []string{"-a/stable", "-a ? 1.3.0", "a = fast"},
		},
		"a bundle in the middle, and what it skipped, is skipped by what replaced it": {
			items: []edit.Item{in("a", "stable", "1.2.0")},
			want:  []string{"a/stable: 1.0.0, 1.1.0 >1.0.0, 1.3.0 >1.1.0 !1.0.5 !1.0.7 !1.2.0"},
		},
		"two neighbours are skipped together": {
			items: []edit.Item{in("a", "stable", "1.1.0"), in("a", "stable", "1.2.0")},
			want:  []string{"a/stable: 1.0.0, 1.3.0 >1.0.0 !1.0.5 !1.0.7 !1.1.0 !1.2.0"},
		},
		"the head: the next bundle is the head, and the deprecation of the bundle goes": {
			items: []edit.Item{in("a", "stable", "1.3.0")},
			want:  []string{"a/stable: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0 !1.0.7", "-a ? 1.3.0"},
		},
		"the tail: what replaced it still does": {
			items: []edit.Item{in("a", "stable", "1.0.0")},
			want:  []string{"a/stable: 1.1.0 >1.0.0, 1.2.0 >1.1.0 !1.0.7, 1.3.0 >1.2.0 !1.0.5"},
		},
		"every bundle of a channel: the channel goes": {
			items: []edit.Item{in("a", "fast", "1.1.0"), in("a", "fast", "1.2.0")},
			want:  []string{"-a/fast", "-a ? fast"},
		},
		"the same item twice": {
			items: []edit.Item{in("a", "fast", ""), in("a", "fast", "")},
			want:  []string{"-a/fast", "-a ? fast"},
		},
		"demoted from one of two channels": {
			items: []edit.Item{in("a", "fast", "1.2.0")}, demote: true,
			want: []string{"a/fast: 1.1.0"},
		},
		"demoted from the last channel": {
			items: []edit.Item{in("a", "stable", "1.3.0")}, demote: true, err: edit.ErrGraph,
			says: `bundle "a.v1.3.0" of package "a" would be left without a channel: remove it instead`,
		},
		"the only channel": {
			items: []edit.Item{in("b", "only", "")}, err: edit.ErrGraph,
			says: `package "b" would be left without a channel: remove the package instead`,
		},
		"the only bundle": {
			items: []edit.Item{in("b", "only", "1.0.0")}, err: edit.ErrGraph, says: "remove the package instead",
		},
		"all channels": {
			items: []edit.Item{in("a", "fast", ""), in("a", "stable", "")}, err: edit.ErrGraph,
			says: `package "a" would be left without a channel`,
		},
		"a package that is not there": {
			items: []edit.Item{in("c", "fast", "")}, err: edit.ErrNotFound, says: `package "c" is not in the catalog`,
		},
		"a channel that is not there": {
			items: []edit.Item{in("b", "fast", "")}, err: edit.ErrNotFound, says: `package "b" has no channel "fast"`,
		},
		"a bundle of another channel": {
			items: []edit.Item{in("a", "fast", "1.3.0")}, err: edit.ErrNotFound,
			says: `channel "fast" of package "a" has no bundle "a.v1.3.0"`,
		},
		"every item that is not there is named": {
			items: []edit.Item{in("a", "x", ""), in("a", "fast", ""), in("b", "y", "")}, err: edit.ErrNotFound,
			says: `has no channel "y"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := catalog(t, takeOutCatalog...)
			start := show(c)
			got, account, err := edit.TakeOut(c, test.items, edit.TakeOutOptions{Demote: test.demote})
			if show(c) != start {
				t.Errorf("the source was changed to\n%s", show(c))
			}
			if test.err != nil {
				if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) || got != nil {
					t.Fatalf("%v, want %v and %q", err, test.err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Validate(); err != nil {
				t.Error(err)
			}
			want := edited(start, test.want)
			if show(got) != want {
				t.Errorf("got\n%s\nwant\n%s", show(got), want)
			}
			if p := account.Packages(); len(p) != 1 || p[0] != test.items[0].Package {
				t.Errorf("the account has the packages %q", p)
			}
		})
	}
}

// edited replaces the lines of a text with the same word before the colon or equals sign; "-" and the start of a line
// removes it.
func edited(text string, changes []string) string {
	lines := strings.Split(text, "\n")
	for _, change := range changes {
		start, gone := strings.CutPrefix(change, "-")
		if !gone {
			start = change[:strings.IndexAny(change, ":=")+1]
		}
		for i, line := range lines {
			switch {
			case !strings.HasPrefix(line, start):
			case gone:
				lines[i] = ""
			default:
				lines[i] = change
			}
		}
	}
	var kept []string
	for _, line := range lines {
		if line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func TestItemText(t *testing.T) {
	for want, item := range map[string]edit.Item{
		"a/stable":          {Package: "a", Channel: "stable"},
		"a/stable/a.v1.0.0": {Package: "a", Channel: "stable", Bundle: "a.v1.0.0"},
	} {
		if item.String() != want {
			t.Errorf("%q instead of %q", item, want)
		}
	}
}
