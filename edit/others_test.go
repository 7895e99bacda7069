package edit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

// verbCase is one row of a table of edits. A row without a kind succeeds.
type verbCase struct {
	name string
	from []string
	do   func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error)
	want []string
	kind error
	text string
	note string // a part of a note or problem of a successful edit
}

func (c verbCase) run(t *testing.T) {
	t.Helper()
	from := catalog(t, c.from...)
	got, account, err := c.do(from)
	if show(from) != sortedText(c.from) {
		t.Errorf("the catalog that was given is now\n%s", show(from))
	}
	if c.kind != nil {
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || got != nil || account != nil {
			t.Errorf("got the error %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if show(got) != sortedText(c.want) {
		t.Errorf("got\n%s\nwant\n%s", show(got), sortedText(c.want))
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	found := c.note == ""
	for _, p := range append(account.Notes, account.Problems...) {
		found = found || strings.Contains(p.Message, c.note)
	}
	if !found {
		t.Errorf("the notes are %v, the problems %v", account.Notes, account.Problems)
	}
}

var two = []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0", "q = b", "q/b: 1.0.0", "q ? 1.0.0 old"}

func TestRemove(t *testing.T) {
	remove := func(o edit.RemoveOptions,
		names ...string) func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) { return edit.Remove(c, names, o) }
	}
	for _, c := range []verbCase{
		{name: "one", from: two, do: remove(edit.RemoveOptions{}, "q"), want: two[:2]},
		{name: "all, one of them twice", from: two, do: remove(edit.RemoveOptions{}, "p", "q", "p")},
		{name: "none", from: two, do: remove(edit.RemoveOptions{}), want: two},
		{name: "missing ones, all of them", from: two, do: remove(edit.RemoveOptions{}, "x", "p", "y"),
			kind: edit.ErrNotFound,
			text: "error removing operator package x: no package found for packagename x\nerror removing operator " +
				"package y: no package found for packagename y"},
		{name: "permissive", from: two, do: remove(edit.RemoveOptions{Permissive: true}, "x", "q"), want: two[:2],
			note: "no package found for packagename x"},
	} {
		t.Run(c.name, c.run)
	}
	c := catalog(t, two...)
	c.Others = []declcfg.Meta{{Schema: "s", Package: "q"}, {Schema: "s"}, {Schema: "s", Package: "r"}}
	got, _, err := edit.Remove(c, []string{"q", "r"}, edit.RemoveOptions{})
	if err != nil || len(got.Others) != 1 || got.Others[0].Package != "" {
		t.Errorf("got %v, %v", got.Others, err)
	}
}

func TestPrune(t *testing.T) {
	prune := func(keep ...string) func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) { return edit.Prune(c, keep) }
	}
	for _, c := range []verbCase{
		{name: "one", from: two, do: prune("p"), want: two[:2]},
		{name: "all stay", from: two, do: prune("p", "q"), want: two},
		{name: "none stays", from: two, do: prune()},
		{name: "one that is not there", from: two, do: prune("x", "p"), want: two[:2],
			note: `package "x", which is to be kept, is not in the catalog`},
	} {
		t.Run(c.name, c.run)
	}
}

func TestPruneStranded(t *testing.T) {
	c := catalog(t, two...)
	c.Bundles = append(c.Bundles, *newBundle(t, "q", "0.9.0"), *newBundle(t, "p", "0.1.0"),
		*newBundle(t, "gone", "0.1.0"))
	c.Deprecations[0].Entries = append(c.Deprecations[0].Entries,
		declcfg.DeprecationEntry{Reference: declcfg.Reference{Schema: declcfg.SchemaBundle, Name: "q.v0.9.0"},
			Message: "m"})
	got, account, err := edit.PruneStranded(c)
	if err != nil || show(got) != sortedText(two) || len(account.Changes) != 3 {
		t.Errorf("got %v, %v\n%s", err, account, show(got))
	}
	if len(c.Bundles) != 6 || len(c.Deprecations[0].Entries) != 2 {
		t.Error("the catalog that was given was changed")
	}
}

func TestDeprecateTruncate(t *testing.T) {
	truncate := func(o edit.TruncateOptions,
		names ...string) func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.DeprecateTruncate(c, names, o)
		}
	}
	image := func(version string) string { return imageName("p", version) }
	gone := func(version string) string {
		return "p ? " + version + " p.v" + version + " is deprecated. Upgrade to a newer version."
	}
	chain := []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0, 1.3.0 >1.2.0"}
	for _, c := range []verbCase{
		{name: "nothing", from: chain, do: truncate(edit.TruncateOptions{}), want: chain},
		{name: "in the middle", from: chain, do: truncate(edit.TruncateOptions{}, image("1.2.0")),
			want: []string{"p = a", "p/a: 1.2.0, 1.3.0 >1.2.0", gone("1.2.0")}},
		{name: "by name", from: chain, do: truncate(edit.TruncateOptions{}, "p/p.v1.2.0"),
			want: []string{"p = a", "p/a: 1.2.0, 1.3.0 >1.2.0", gone("1.2.0")}},
		{name: "out of order", from: chain, do: truncate(edit.TruncateOptions{}, image("1.2.0"), image("1.0.0"),
			image("1.1.0")), want: []string{"p = a", "p/a: 1.2.0, 1.3.0 >1.2.0", gone("1.2.0")}},
		{name: "skipped ones go as well",
			from: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.1 >1.0.0 !1.1.0, 1.2.0 >1.1.1"},
			do:   truncate(edit.TruncateOptions{}, image("1.1.1")),
			want: []string{"p = a", "p/a: 1.1.1, 1.2.0 >1.1.1", gone("1.1.1")}},
		{name: "other channels stay", from: []string{"p = a", chain[1], "p/b: 1.0.0, 1.1.0 >1.0.0"},
			do:   truncate(edit.TruncateOptions{}, image("1.2.0")),
			want: []string{"p = a", "p/a: 1.2.0, 1.3.0 >1.2.0", "p/b: 1.0.0, 1.1.0 >1.0.0", gone("1.2.0")}},
		{name: "a channel of which it is the head goes", from: []string{"p = a", chain[1], "p/b: 1.0.0, 1.1.0 >1.0.0"},
			do:   truncate(edit.TruncateOptions{}, image("1.1.0")),
			want: []string{"p = a", "p/a: 1.1.0, 1.2.0 >1.1.0, 1.3.0 >1.2.0", gone("1.1.0")}},
		{name: "with its last channel the bundle goes",
			from: []string{"p = a", "p/a: 1.0.0", "p/b: 1.0.0, 1.1.0 >1.0.0"},
			do:   truncate(edit.TruncateOptions{}, "p/p.v0.9.0"), kind: edit.ErrNotFound,
			text: "missing from registry: [p/p.v0.9.0]"},
		{name: "edges of bundles beside it lead out of the catalog",
			from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0, 1.2.1 >1.1.0, 1.3.0 >1.2.0 !1.2.1"},
			do:   truncate(edit.TruncateOptions{}, image("1.2.0")),
			want: []string{"p = a", "p/a: 1.2.0, 1.2.1 >1.1.0, 1.3.0 >1.2.0 !1.2.1", gone("1.2.0")}},
		{name: "where the graph branches off into another channel it stays",
			from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0, 1.3.0 >1.2.0",
				"p/b: 1.0.0, 1.1.0 >1.0.0, 1.1.5 >1.1.0"}, do: truncate(edit.TruncateOptions{}, image("1.2.0")),
			want: []string{"p = a", "p/a: 1.2.0, 1.3.0 >1.2.0", "p/b: 1.0.0, 1.1.0 >1.0.0, 1.1.5 >1.1.0",
				gone("1.2.0")}},
		{name: "the head of the default channel", from: chain, do: truncate(edit.TruncateOptions{}, image("1.3.0")),
			kind: edit.ErrDefaultChannel,
			text: "error deprecating bundle img.example/p:v1.3.0: Bundle deprecation causing default channel removal"},
		{name: "above the head of the default channel",
			from: []string{"p = a", "p/a: 1.0.0", "p/b: 1.0.0, 1.1.0 >1.0.0"},
			do:   truncate(edit.TruncateOptions{}, image("1.1.0")), kind: edit.ErrDefaultChannel,
			text: "Bundle deprecation causing default channel removal"},
		{name: "missing", from: chain, do: truncate(edit.TruncateOptions{}, "x", image("1.0.0"), "y"),
			kind: edit.ErrNotFound, text: "target bundlepaths for deprecation missing from registry: [x y]"},
		{name: "permissive: missing", from: chain,
			do:   truncate(edit.TruncateOptions{Permissive: true}, "x", image("1.2.0")),
			want: []string{"p = a", "p/a: 1.2.0, 1.3.0 >1.2.0", gone("1.2.0")}, note: "[x]"},
		{name: "package removal: all heads", from: append([]string{"p/b: 1.1.0"}, append(chain, two[2:]...)...),
			do:   truncate(edit.TruncateOptions{AllowPackageRemoval: true}, image("1.1.0"), image("1.3.0")),
			want: two[2:]},
		{name: "package removal: not all heads", from: append([]string{"p/b: 1.1.0", "p/c: 1.2.0"}, chain...),
			do: truncate(edit.TruncateOptions{AllowPackageRemoval: true}, image("1.3.0")), kind: edit.ErrDefaultChannel,
			text: "cannot deprecate default channel head from package without removing all other channel heads in " +
				"package p: must deprecate p.v1.1.0, head of channel b\n"},
		{name: "package removal: not the default channel", from: append([]string{"p/b: 1.0.0, 1.1.0 >1.0.0"}, chain...),
			do:   truncate(edit.TruncateOptions{AllowPackageRemoval: true}, image("1.1.0")),
			want: []string{"p = a", "p/a: 1.1.0, 1.2.0 >1.1.0, 1.3.0 >1.2.0", gone("1.1.0")}},
	} {
		t.Run(c.name, c.run)
	}
}

func TestAddAfterTruncation(t *testing.T) {
	chain := []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0, 1.3.0 >1.2.0",
		"p/b: 1.0.0, 1.1.0 >1.0.0, 1.1.5 >1.1.0"}
	gone := "p ? 1.2.0 p.v1.2.0 is deprecated. Upgrade to a newer version."
	for _, c := range []struct {
		name string
		add  []string
		o    edit.AddOptions
		want []string
		text string
	}{
		{"on top", []string{"p 1.4.0 >1.3.0 @a"}, edit.AddOptions{},
			[]string{"p = a", "p/a: 1.2.0, 1.3.0 >1.2.0, 1.4.0 >1.3.0", chain[2], gone}, ""},
		{"on top of the deprecated one", []string{"p 1.4.0 >1.2.0 !1.3.0 @a"}, edit.AddOptions{},
			[]string{"p = a", "p/a: 1.2.0, 1.3.0, 1.4.0 >1.2.0 !1.3.0", chain[2], gone}, ""},
		{"a new channel on top of it", []string{"p 1.4.0 >1.2.0 @c"}, edit.AddOptions{},
			[]string{"p = a", "p/a: 1.2.0, 1.3.0 >1.2.0", chain[2], "p/c: 1.2.0, 1.4.0 >1.2.0", gone}, ""},
		{"overwriting what is above it", []string{"p 1.3.0 >1.2.0 @a %new"}, edit.AddOptions{OverwriteLatest: true},
			[]string{"p = a", "p/a: 1.2.0, 1.3.0 >1.2.0", chain[2], gone}, ""},
		{"what was cut off, again", []string{"p 0.9.0 @a"}, edit.AddOptions{}, nil, "add prunes bundle p.v0.9.0"},
		{"overwriting what is above it into another channel", []string{"p 1.3.0 >1.2.0 @c =c %new"},
			edit.AddOptions{OverwriteLatest: true},
			[]string{"p = c", chain[2], "p/c: 1.2.0, 1.3.0 >1.2.0", gone}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, _, err := edit.DeprecateTruncate(catalog(t, chain...), []string{imageName("p", "1.2.0")},
				edit.TruncateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := edit.Add(from, additionsOf(t, c.add...), c.o)
			if c.text != "" {
				if err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || show(got) != sortedText(c.want) {
				t.Errorf("got %v\n%s", err, show(got))
			}
		})
	}
}

func TestMarkDeprecated(t *testing.T) {
	mark := func(marks ...edit.Mark) func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.MarkDeprecated(c, marks)
		}
	}
	for _, c := range []verbCase{
		{name: "a bundle and a channel", from: two,
			do: mark(edit.Mark{Package: "p", Bundle: "p.v1.0.0", Message: "m n"},
				edit.Mark{Package: "p", Channel: "a", Message: "o"}),
			want: append([]string{"p ? 1.0.0 m n", "p ? a o"}, two...)},
		{name: "a package", from: two, do: mark(edit.Mark{Package: "p", Message: "m"}),
			want: append([]string{"p ?  m"}, two...)},
		{name: "another message", from: two, do: mark(edit.Mark{Package: "q", Bundle: "q.v1.0.0", Message: "older"}),
			want: append([]string{"q ? 1.0.0 older"}, two[:4]...)},
		{name: "taken back", from: two, do: mark(edit.Mark{Package: "q", Bundle: "q.v1.0.0"}), want: two[:4]},
		{name: "taken back where it was not", from: two, do: mark(edit.Mark{Package: "p", Bundle: "p.v1.0.0"}),
			kind: edit.ErrNotFound, text: "no such deprecation"},
		{name: "what is not there", from: two,
			do: mark(edit.Mark{Package: "x", Message: "m"}, edit.Mark{Package: "p", Channel: "x", Message: "m"},
				edit.Mark{Package: "p", Bundle: "x", Message: "m"}), kind: edit.ErrNotFound,
			text: "package \"x\" is not in the catalog\npackage \"p\" has no channel \"x\"\npackage \"p\" has no " +
				"bundle \"x\""},
		{name: "both", from: two, do: mark(edit.Mark{Package: "p", Channel: "a", Bundle: "p.v1.0.0", Message: "m"}),
			kind: edit.ErrInvalid, text: "not of both"},
	} {
		t.Run(c.name, c.run)
	}
}

func TestMerge(t *testing.T) {
	merge := func(o edit.MergeOptions, text ...string) func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Merge([]*declcfg.Catalog{c, catalog(t, text...)}, o)
		}
	}
	for _, c := range []verbCase{
		{name: "other packages", from: two[:2], do: merge(edit.MergeOptions{}, two[2:]...), want: two},
		{name: "the same again", from: two, do: merge(edit.MergeOptions{}, two...), want: two},
		{name: "more of a package", from: two[:2],
			do:   merge(edit.MergeOptions{}, "p = b", "p/a: 1.1.0 >1.0.0 !1.0.5, 1.2.0 >1.1.0", "p/b: 1.2.0", "p ? b m"),
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0 !1.0.5, 1.2.0 >1.1.0", "p/b: 1.2.0", "p ? b m"}},
		{name: "a package in place of another", from: two,
			do:   merge(edit.MergeOptions{Replace: true}, "q = c", "q/c: 2.0.0"),
			want: []string{two[0], two[1], "q = c", "q/c: 2.0.0"}},
		{name: "edges that are not the same", from: two,
			do: merge(edit.MergeOptions{}, "p = a", "p/a: 0.9.0, 1.1.0 >0.9.0"), kind: edit.ErrConflict,
			text: `package "p": channel "a": bundle "p.v1.1.0" replaces "p.v1.0.0" in one catalog and "p.v0.9.0" in another`},
		{name: "ranges that are not the same", from: []string{"p = a", "p/a: 1.0.0 ~<1.0.0"},
			do: merge(edit.MergeOptions{}, "p = a", "p/a: 1.0.0 ~<0.9.0"), kind: edit.ErrConflict, text: "skipRange"},
		{name: "two heads", from: two, do: merge(edit.MergeOptions{}, "p = a", "p/a: 1.0.0, 1.2.0 >1.0.0"),
			kind: edit.ErrGraph, text: "multiple channel heads"},
	} {
		t.Run(c.name, c.run)
	}
	other := catalog(t, two...)
	other.Bundles[0].Image = "other"
	if _, _, err := edit.Merge([]*declcfg.Catalog{catalog(t, two...), other}, edit.MergeOptions{}); !errors.Is(err,
		edit.ErrConflict) || !strings.Contains(err.Error(), `bundle "p.v1.0.0" is not the same in both catalogs`) {
		t.Errorf("got %v", err)
	}
	if got, _, err := edit.Merge(nil, edit.MergeOptions{}); err != nil || len(got.Packages) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestFilter(t *testing.T) {
	filter := func(s ...edit.Selection) func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Filter(c, s, edit.FilterOptions{})
		}
	}
	chain := []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0, 1.3.0 >1.2.0"}
	channels := []string{"p = a", "p/a: 1.0.0", "p/b: 1.0.0, 2.0.0 >1.0.0", "p/c: 3.0.0", "p ? c gone", "p ? 1.0.0 old"}
	for _, c := range []verbCase{
		{name: "a package", from: two, do: filter(edit.Selection{Package: "p"}), want: two[:2]},
		{name: "nothing", from: two, do: filter()},
		{name: "a channel", from: channels,
			do:   filter(edit.Selection{Package: "p", Channels: []edit.ChannelSelection{{Name: "a"}}}),
			want: []string{"p = a", "p/a: 1.0.0", "p ? 1.0.0 old"}},
		{name: "without the default channel the one with the highest head is it", from: channels,
			do:   filter(edit.Selection{Package: "p", Channels: []edit.ChannelSelection{{Name: "b"}, {Name: "c"}}}),
			want: []string{"p = c", "p/b: 1.0.0, 2.0.0 >1.0.0", "p/c: 3.0.0", "p ? c gone", "p ? 1.0.0 old"}},
		{name: "a default channel that is asked for", from: channels,
			do:   filter(edit.Selection{Package: "p", DefaultChannel: "b"}),
			want: append([]string{"p = b"}, channels[1:]...)},
		{name: "a default channel that is not kept", from: channels,
			do: filter(edit.Selection{Package: "p", DefaultChannel: "a",
				Channels: []edit.ChannelSelection{{Name: "b"}}}), kind: edit.ErrDefaultChannel,
			text: `is to be "a", which is not kept`},
		{name: "from a version on the edge leads out", from: chain,
			do:   filter(edit.Selection{Package: "p", Versions: ">=1.2.0"}),
			want: []string{"p = a", "p/a: 1.2.0 >1.1.0, 1.3.0 >1.2.0"}},
		{name: "up to a version there is another head", from: chain,
			do:   filter(edit.Selection{Package: "p", Versions: "<=1.1.0"}),
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"}},
		{name: "a hole is skipped", from: chain, do: filter(edit.Selection{Package: "p", Versions: "<1.1.0 || >1.2.0"}),
			want: []string{"p = a", "p/a: 1.0.0, 1.3.0 >1.0.0 !1.1.0 !1.2.0"}},
		{name: "the head only", from: chain, do: filter(edit.Selection{Package: "p", HeadsOnly: true}),
			want: []string{"p = a", "p/a: 1.3.0 >1.2.0"}},
		{name: "the head of a range only", from: chain,
			do:   filter(edit.Selection{Package: "p", Versions: "<1.3.0", HeadsOnly: true}),
			want: []string{"p = a", "p/a: 1.2.0 >1.1.0"}},
		{name: "a range of a channel", from: []string{"p = a", chain[1], "p/b: 1.0.0, 1.1.0 >1.0.0"},
			do: filter(edit.Selection{Package: "p", Versions: ">=1.3.0",
				Channels: []edit.ChannelSelection{{Name: "a"}, {Name: "b", Versions: "<1.1.0"}}}),
			want: []string{"p = a", "p/a: 1.3.0 >1.2.0", "p/b: 1.0.0"}},
		{name: "what a removed head skipped is skipped by the new one",
			from: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.1 >1.0.0, 2.0.0 >1.1.1 !1.1.0"},
			do:   filter(edit.Selection{Package: "p", Versions: "<2.0.0"}),
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.1 >1.0.0 !1.1.0"}},
		{name: "channels without a bundle in the range go", from: channels,
			do:   filter(edit.Selection{Package: "p", Versions: "<3.0.0"}),
			want: []string{"p = a", "p/a: 1.0.0", "p/b: 1.0.0, 2.0.0 >1.0.0", "p ? 1.0.0 old"}},
		{name: "missing ones", from: two,
			do: filter(edit.Selection{Package: "x"},
				edit.Selection{Package: "p", Channels: []edit.ChannelSelection{{Name: "y"}, {Name: "a"}}}),
			kind: edit.ErrNotFound,
			text: "package \"x\" not found\npackage \"p\" has no channel \"y\", only a"},
		{name: "nothing in the range", from: two, do: filter(edit.Selection{Package: "p", Versions: ">9.0.0"}),
			kind: edit.ErrNotFound, text: `package "p": no bundle has a version in ">9.0.0"`},
		{name: "nothing in the range of a channel", from: two,
			do: filter(edit.Selection{Package: "p",
				Channels: []edit.ChannelSelection{{Name: "a", Versions: ">9.0.0"}}}), kind: edit.ErrNotFound,
			text: `channel "a": no bundle has a version in ">9.0.0"`},
		{name: "no range", from: two, do: filter(edit.Selection{Package: "p", Versions: "x"}), kind: edit.ErrInvalid,
			text: "version range"},
		{name: "a long range", from: two,
			do: filter(edit.Selection{Package: "p", Versions: strings.Repeat(">1.0.0 ", 1000)}), kind: edit.ErrInvalid,
			text: "limit exceeded"},
		{name: "twice", from: two, do: filter(edit.Selection{Package: "p"}, edit.Selection{Package: "p"}),
			kind: edit.ErrInvalid, text: "selected twice"},
		{name: "permissive", from: two, do: func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Filter(c, []edit.Selection{{Package: "x"}, {Package: "p"}},
				edit.FilterOptions{Permissive: true})
		}, want: two[:2], note: `package "x" not found`},
	} {
		t.Run(c.name, c.run)
	}
}
