package edit_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

// addCase is one row of a table of additions. A row without a kind succeeds.
type addCase struct {
	name string
	from []string
	add  []string
	o    edit.AddOptions
	want []string
	kind error
	text string // of the error, or of a problem of a permissive edit
	exit int
}

func (c addCase) run(t *testing.T) {
	t.Helper()
	from := catalog(t, c.from...)
	got, account, err := edit.Add(from, additionsOf(t, c.add...), c.o)
	if show(from) != sortedText(c.from) {
		t.Errorf("the catalog that was given is now\n%s", show(from))
	}
	if c.kind != nil && !c.o.Permissive {
		var e *edit.Error
		if !errors.As(err, &e) || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) ||
			e.ExitStatus() != max(c.exit, 1) {
			t.Errorf("got the error %v", err)
		}
		if got != nil || account != nil {
			t.Error("a failed edit gives a catalog")
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
	if c.kind != nil && !slices.ContainsFunc(account.Problems,
		func(p edit.Problem) bool { return errors.Is(p, c.kind) && strings.Contains(p.Message, c.text) }) {
		t.Errorf("the problems are %v", account.Problems)
	}
	if c.kind == nil && len(account.Problems) > 0 {
		t.Errorf("the problems are %v", account.Problems)
	}
}

func TestAddReplaces(t *testing.T) {
	permissive := edit.AddOptions{Permissive: true}
	for _, c := range []addCase{
		{name: "a new package", add: []string{"p 1.0.0 @a,b =b"}, want: []string{"p = b", "p/a: 1.0.0", "p/b: 1.0.0"}},
		{name: "two packages at once", add: []string{"p 1.0.0 @a", "q 1.0.0 @b"},
			want: []string{"p = a", "q = b", "p/a: 1.0.0", "q/b: 1.0.0"}},
		{name: "on top of a channel", from: []string{"p = a", "p/a: 1.0.0"}, add: []string{"p 1.1.0 >1.0.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"}},
		{name: "a whole chain at once, in any order",
			add:  []string{"p 1.2.0 >1.1.0 @a", "p 1.0.0 @a", "p 1.1.0 >1.0.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0"}},
		{name: "a new channel takes over what its head leads to", from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"},
			add:  []string{"p 1.2.0 >1.1.0 @b"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0", "p/b: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0"}},
		{name: "a subset of the channels", from: []string{"p = a", "p/a: 1.0.0", "p/b: 1.0.0"},
			add:  []string{"p 1.1.0 >1.0.0 @b"},
			want: []string{"p = a", "p/a: 1.0.0", "p/b: 1.0.0, 1.1.0 >1.0.0"}},
		{name: "a skipped bundle keeps no edges in the channel", from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"},
			add:  []string{"p 1.1.1 >1.0.0 !1.1.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.1 >1.0.0 !1.1.0"}},
		{name: "edges of bundles that were skipped before stay",
			from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.1.1 >1.0.0 !1.1.0"},
			add:  []string{"p 1.2.0 >1.1.1 !1.1.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.1.1 >1.0.0 !1.1.0, 1.2.0 >1.1.1 !1.1.0"}},
		{name: "skips may lead out of the catalog", add: []string{"p 1.1.0 !1.0.0 ~<1.1.0 @a"},
			want: []string{"p = a", "p/a: 1.1.0 !1.0.0 ~<1.1.0"}},
		{name: "edges out of the catalog that were there stay", from: []string{"p = a", "p/a: 1.1.0 >1.0.0"},
			add:  []string{"p 1.2.0 >1.1.0 @a"},
			want: []string{"p = a", "p/a: 1.1.0 >1.0.0, 1.2.0 >1.1.0"}},
		{name: "bundles that nothing leads to any more are removed", from: []string{"p = a", "p/a: 1.0.0"},
			add: []string{"p 2.0.0 @a"}, want: []string{"p = a", "p/a: 2.0.0"}},
		{name: "channels that no bundle wants to be in stay as they are",
			from: []string{"p = a", "p/a: 1.0.0, 2.0.0 !1.0.0", "p/odd: 1.0.0 >2.0.0, 2.0.0"},
			add:  []string{"p 2.1.0 >2.0.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 2.0.0 !1.0.0, 2.1.0 >2.0.0", "p/odd: 1.0.0 >2.0.0, 2.0.0"}},
		{name: "a bundle that another channel leads to already is in that, too",
			from: []string{"p = a", "p/a: 1.1.0 !1.0.5"}, add: []string{"p 1.0.5 @b"},
			want: []string{"p = a", "p/a: 1.0.5, 1.1.0 !1.0.5", "p/b: 1.0.5"}},
		{name: "what fills a gap is replaced as it was meant", from: []string{"p = a", "p/a: 1.1.0 >1.0.0"},
			add: []string{"p 1.0.0 @a"}, want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"}},
		{name: "an empty name of a channel is none", add: []string{"p 1.0.0 @a,,a"},
			want: []string{"p = a", "p/a: 1.0.0"}},
		{name: "the same bundle twice is once", add: []string{"p 1.0.0 @a", "p 1.0.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0"}},
		{name: "build metadata orders heads", from: []string{"p = a", "p/a: 1.0.0+1"},
			add: []string{"p 1.0.0+2 >1.0.0+1 @a"}, want: []string{"p = a", "p/a: 1.0.0+1, 1.0.0+2 >1.0.0+1"}},

		{name: "what is replaced has to be there", add: []string{"p 1.1.0 >1.0.0 @a", "p 1.2.0 >1.1.0 @a"},
			kind: edit.ErrGraph, text: "Invalid bundle p.v1.1.0, replaces nonexistent bundle p.v1.0.0"},
		{name: "a circle", add: []string{"p 1.0.0 >1.1.0 @a", "p 1.1.0 >1.0.0 @a"}, kind: edit.ErrGraph,
			text: "Cycle detected, p.v1.0.0 replaces p.v1.1.0"},
		{name: "a bundle that replaces itself", add: []string{"p 1.0.0 >1.0.0 @a"}, kind: edit.ErrGraph,
			text: "Cycle detected, p.v1.0.0 replaces p.v1.0.0"},
		{name: "lower than the head", from: []string{"p = a", "p/a: 1.1.0"}, add: []string{"p 1.0.0 @a"},
			kind: edit.ErrGraph,
			text: "add prunes bundle p.v1.0.0 (img.example/p:v1.0.0) from package p, channel a: this may be due to " +
				"incorrect channel head (p.v1.1.0, skips/replaces [])"},
		{name: "two bundles of the highest version", add: []string{"q 1.0.0 @a", "p 1.0.0+1 @a", "p 1.0.0+1.v @b"},
			want: []string{}, kind: edit.ErrDefaultChannel, text: "unable to determine default channel"},
		{name: "an image that is there", from: []string{"p = a", "p/a: 1.0.0"},
			add: []string{"p 1.1.0 >1.0.0 @a %img.example/p:v1.0.0"}, kind: edit.ErrImageExists,
			text: "Bundle img.example/p:v1.0.0 already exists", exit: 2},
		{name: "a name that is there", from: []string{"p = a", "p/a: 1.0.0"}, add: []string{"p 1.0.0 @a %other"},
			kind: edit.ErrVersionExists, text: "Bundle already added that provides package and csv", exit: 3},
		{name: "a name that comes twice", add: []string{"p 1.0.0 @a", "p 1.0.0 @a %other"}, kind: edit.ErrVersionExists,
			text: "Bundle already added that provides package and csv", exit: 3},
		{name: "no channel", add: []string{"p 1.0.0"}, kind: edit.ErrInvalid, text: "names no channel"},
		{name: "no version", add: []string{"p 1.0 @a"}, kind: edit.ErrInvalid,
			text: "No Major.Minor.Patch elements found"},
		{name: "a leading zero in a build identifier", add: []string{"p 1.0.0+01 @a", "p 1.0.0+2 @a =a"},
			kind: edit.ErrInvalid, text: "failed to convert build-id"},
		{name: "edges to a bundle of another package that is added",
			add: []string{"p 1.0.0 @a", "q 1.1.0 >p.v1.0.0 @a"}, kind: edit.ErrGraph,
			text: "bundle p.v1.0.0 must belong to exactly one package, found on: [p q]"},
		{name: "edges to a bundle of another package that is there", from: []string{"p = a", "p/a: 1.0.0"},
			add: []string{"q 1.1.0 !p.v1.0.0 @a"}, kind: edit.ErrGraph,
			text: "bundle p.v1.0.0 belongs to package p on index, cannot be added as an edge for package q"},
		{name: "substitutes without asking", add: []string{"p 1.0.0 @a", "p 1.0.0+1 ^1.0.0 @a"}, kind: edit.ErrAlpha,
			text: "SubstitutesFor is an alpha-only feature"},
		{name: "every problem of a batch", from: []string{"p = a", "p/a: 1.0.0"},
			add: []string{"p 1.0.0 @a", "q 1.0.0", "r 1.1.0 >1.0.0 @a", "s 1.0.0 @a"}, kind: edit.ErrGraph,
			text: "Invalid bundle r.v1.1.0, replaces nonexistent bundle r.v1.0.0", exit: 2},

		{name: "permissive: the good ones are added", o: permissive, from: []string{"p = a", "p/a: 1.0.0"},
			add:  []string{"p 1.0.0 @a", "p 1.1.0 >1.0.0 @a", "q 1.0.0", "r 1.1.0 >1.0.0 @a", "s 1.0.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0", "s = a", "s/a: 1.0.0"}, kind: edit.ErrVersionExists,
			text: "Bundle already added"},
		{name: "permissive: of a chain what does not hang on a bad one", o: permissive,
			from: []string{"p = a", "p/a: 1.0.0"},
			add:  []string{"p 1.1.0 >1.0.0 @a", "p 1.3.0 >1.2.0 @a", "p 1.4.0 >1.3.0 @b"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"}, kind: edit.ErrGraph,
			text: "Invalid bundle p.v1.4.0, replaces nonexistent bundle p.v1.3.0"},
		{name: "permissive: a bundle that is pruned from one of its channels", o: permissive,
			from: []string{"p = a", "p/a: 1.1.0"}, add: []string{"p 1.0.0 @a,b"},
			want: []string{"p = a", "p/a: 1.1.0", "p/b: 1.0.0"}, kind: edit.ErrGraph,
			text: "add prunes bundle p.v1.0.0 (img.example/p:v1.0.0) from package p, channel a"},
	} {
		t.Run(c.name, c.run)
	}
}

func TestAddTrimsChannels(t *testing.T) {
	a := addition(t, "p 1.0.0 @a")
	a.Channels = []string{" beta ", "beta\n", "  "}
	a.Skips = []string{"", "p.v0.9.0", "p.v0.9.0"}
	got, _, err := edit.Add(&declcfg.Catalog{}, []edit.Addition{a}, edit.AddOptions{})
	if err != nil || show(got) != "p = beta\np/beta: 1.0.0 !0.9.0" {
		t.Errorf("got %v, %v", show(got), err)
	}
}

func TestParseMode(t *testing.T) {
	for name, want := range map[string]edit.Mode{"replaces": edit.Replaces, "SemVer": edit.SemVer,
		"SEMVER-SKIPPATCH": edit.SemVerSkipPatch} {
		if got, err := edit.ParseMode(name); err != nil || got != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "semver-skip-patch"} {
		if _, err := edit.ParseMode(name); err == nil || !strings.Contains(err.Error(), "Invalid channel update mode") {
			t.Errorf("%q: got %v", name, err)
		}
	}
	if _, _, err := edit.Add(&declcfg.Catalog{}, nil, edit.AddOptions{Mode: "x"}); err == nil {
		t.Error("an unknown mode is taken")
	}
}

func TestAddDefaultChannel(t *testing.T) {
	for _, c := range []addCase{
		{name: "the only channel", add: []string{"p 1.0.0 @a"}, want: []string{"p = a", "p/a: 1.0.0"}},
		{name: "the only channel, whatever is declared", add: []string{"p 1.0.0 @a =b"},
			want: []string{"p = a", "p/a: 1.0.0"}},
		{name: "the highest version that declares one",
			add: []string{"p 1.0.0 @a,b =a", "p 1.1.0 >1.0.0 @a,b =b", "p 1.2.0 >1.1.0 @a,b"},
			want: []string{"p = b", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0",
				"p/b: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0"}},
		{name: "in any order", add: []string{"p 1.2.0 >1.1.0 @a,b", "p 1.1.0 >1.0.0 @a,b =b", "p 1.0.0 @a,b =a"},
			want: []string{"p = b", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0",
				"p/b: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0"}},
		{name: "what is there stays below a higher version", from: []string{"p = a", "p/a: 2.0.0", "p/b: 2.0.0"},
			add:  []string{"p 1.0.0 @c =c"},
			want: []string{"p = a", "p/a: 2.0.0", "p/b: 2.0.0", "p/c: 1.0.0"}},
		{name: "a higher version changes it", from: []string{"p = a", "p/a: 1.0.0"},
			add: []string{"p 1.1.0 >1.0.0 @b =b"}, want: []string{"p = b", "p/a: 1.0.0", "p/b: 1.0.0, 1.1.0 >1.0.0"}},
		{name: "a higher version that declares none keeps it", from: []string{"p = a", "p/a: 1.0.0"},
			add: []string{"p 1.1.0 >1.0.0 @b"}, want: []string{"p = a", "p/a: 1.0.0", "p/b: 1.0.0, 1.1.0 >1.0.0"}},
		{name: "a declared one that is no channel", add: []string{"p 1.0.0 @a,b =c"}, kind: edit.ErrDefaultChannel,
			text: `unable to determine default channel among channel heads: package "p" has the channels ["a" "b"], and "c" is declared`},
		{name: "none is declared", add: []string{"p 1.0.0 @a,b"}, kind: edit.ErrDefaultChannel,
			text: "and no bundle declares one"},
	} {
		t.Run(c.name, c.run)
	}
}

func TestAddHeads(t *testing.T) {
	for _, c := range []addCase{
		{name: "the highest versions are the heads",
			add:  []string{"p 1.0.0 @a,b =a", "p 1.1.0 >1.0.0 @a", "p 1.2.0 >1.0.0 @b"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0", "p/b: 1.0.0, 1.2.0 >1.0.0"}},
		{name: "pre-releases come before releases", add: []string{"p 1.0.0-rc.1 @a", "p 1.0.0 >1.0.0-rc.1 @a"},
			want: []string{"p = a", "p/a: 1.0.0-rc.1, 1.0.0 >1.0.0-rc.1"}},
		{name: "build metadata comes after none", add: []string{"p 1.0.0+5 >1.0.0 @a", "p 1.0.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.0.0+5 >1.0.0"}},
		{name: "numbers in build metadata are numbers", add: []string{"p 1.0.0+10 >1.0.0+9 @a", "p 1.0.0+9 @a"},
			want: []string{"p = a", "p/a: 1.0.0+10 >1.0.0+9, 1.0.0+9"}},
		{name: "the same version twice in a channel",
			add: []string{"p 1.0.0 @a", "p 2.0.0 @b =b", "p 1.0.0+1 @a", "p p.vx @a"}, kind: edit.ErrInvalid,
			text: "p.vx"},
	} {
		t.Run(c.name, c.run)
	}
	twins := additionsOf(t, "p 1.0.0 @a", "p 1.0.0 @a %other", "p 2.0.0 @b =b")
	twins[1].Bundle.Name = "p.twin"
	if _, _, err := edit.Add(&declcfg.Catalog{}, twins, edit.AddOptions{}); err == nil || !strings.Contains(err.Error(),
		"more than one potential channel head for a") {
		t.Errorf("got %v", err)
	}
	if _, _, err := edit.Add(&declcfg.Catalog{}, twins[:2], edit.AddOptions{}); err == nil ||
		!strings.Contains(err.Error(), "more than one bundle with maximum version 1.0.0") {
		t.Errorf("got %v", err)
	}
}

func TestAddOverwrite(t *testing.T) {
	o := edit.AddOptions{OverwriteLatest: true}
	for _, c := range []addCase{
		{name: "a head", o: o, from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"},
			add:  []string{"p 1.1.0 >1.0.0 ~<1.1.0 @a %new"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0 ~<1.1.0"}},
		{name: "leaving a channel", o: o, from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0",
			"p/b: 1.0.0, 1.1.0 >1.0.0"}, add: []string{"p 1.1.0 >1.0.0 @a %new"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0", "p/b: 1.0.0"}},
		{name: "changing channels", o: o, from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"},
			add: []string{"p 1.1.0 >1.0.0 @b %new"}, want: []string{"p = a", "p/a: 1.0.0", "p/b: 1.0.0, 1.1.0 >1.0.0"}},
		{name: "changing the default channel", o: o, from: []string{"p = a", "p/a: 1.0.0", "p/b: 1.0.0"},
			add: []string{"p 1.0.0 @a,b =b %new"}, want: []string{"p = b", "p/a: 1.0.0", "p/b: 1.0.0"}},
		{name: "the only bundle, and another channel", o: o, from: []string{"p = a", "p/a: 1.0.0"},
			add: []string{"p 1.0.0 @b %new"}, want: []string{"p = b", "p/b: 1.0.0"}},
		{name: "with another on top", o: o, from: []string{"p = a", "p/a: 1.0.0"},
			add: []string{"p 1.0.0 @a %new", "p 1.1.0 >1.0.0 @a"}, want: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"}},
		{name: "in two packages", o: o, from: []string{"p = a", "p/a: 1.0.0", "q = a", "q/a: 1.0.0"},
			add:  []string{"p 1.0.0 @a %new", "q 1.0.0 @a %newer"},
			want: []string{"p = a", "p/a: 1.0.0", "q = a", "q/a: 1.0.0"}},
		{name: "not a head", o: o, from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0"},
			add: []string{"p 1.0.0 @a %new"}, kind: edit.ErrOverwrite,
			text: "Cannot overwrite a bundle that is not at the head of a channel using --overwrite-latest: cannot " +
				"overwrite bundle p.v1.0.0 from package p: replaced by p.v1.1.0 on channel a"},
		{name: "two in a package", o: o, from: []string{"p = a", "p/a: 1.0.0", "p/b: 1.1.0"},
			add: []string{"p 1.0.0 @a %new", "p 1.1.0 @b %newer"}, kind: edit.ErrOverwrite,
			text: "Cannot overwrite more than one bundle at a time for a given package"},
		{name: "the same image", o: o, from: []string{"p = a", "p/a: 1.0.0"}, add: []string{"p 1.0.0 @a"},
			kind: edit.ErrImageExists, text: "already exists", exit: 2},
		{name: "has no effect in other modes", o: edit.AddOptions{OverwriteLatest: true, Mode: edit.SemVer},
			from: []string{"p = a", "p/a: 1.0.0"}, add: []string{"p 1.0.0 @a %new"},
			kind: edit.ErrVersionExists, text: "Bundle already added", exit: 3},
	} {
		t.Run(c.name, c.run)
	}
	from := catalog(t, "p = a", "p/a: 1.0.0")
	got, account, err := edit.Add(from, additionsOf(t, "p 1.0.0 @a %new"), o)
	if err != nil || got.Bundles[0].Image != "new" || len(got.Bundles) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	want := "changed bundle p/p.v1.0.0: img.example/p:v1.0.0 -> new (it was overwritten)"
	if len(account.Changes) != 1 || account.Changes[0].String() != want {
		t.Errorf("got %v", account.Changes)
	}
}

func TestAddSemVer(t *testing.T) {
	o, skip := edit.AddOptions{Mode: edit.SemVer}, edit.AddOptions{Mode: edit.SemVerSkipPatch}
	chain := []string{"p = a", "p/a: 1.0.0, 1.2.0 >1.0.0, 1.4.0 >1.2.0"}
	for _, c := range []addCase{
		{name: "an empty catalog", o: o, add: []string{"p 1.0.0 @a"}, want: []string{"p = a", "p/a: 1.0.0"}},
		{name: "on top", o: o, from: chain, add: []string{"p 1.5.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.2.0 >1.0.0, 1.4.0 >1.2.0, 1.5.0 >1.4.0"}},
		{name: "between", o: o, from: chain, add: []string{"p 1.3.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.2.0 >1.0.0, 1.3.0 >1.2.0, 1.4.0 >1.3.0"}},
		{name: "below", o: o, from: chain, add: []string{"p 0.9.0 @a"},
			want: []string{"p = a", "p/a: 0.9.0, 1.0.0 >0.9.0, 1.2.0 >1.0.0, 1.4.0 >1.2.0"}},
		{name: "in any order", o: o, add: []string{"p 1.3.0 @a", "p 1.1.0 @a,b", "p 1.2.0 @a =a", "p 1.0.0 @b =b"},
			want: []string{"p = a", "p/a: 1.1.0, 1.2.0 >1.1.0, 1.3.0 >1.2.0", "p/b: 1.0.0, 1.1.0 >1.0.0"}},
		{name: "whatever it wishes for", o: o, from: chain, add: []string{"p 1.5.0 >1.0.0 !1.4.0 ~<1.5.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.2.0 >1.0.0, 1.4.0 >1.2.0, 1.5.0 >1.4.0 ~<1.5.0"}},
		{name: "a new channel", o: o, from: chain, add: []string{"p 1.5.0 @b"},
			want: append(slices.Clone(chain), "p/b: 1.5.0")},
		{name: "the declared default wins", o: o, from: chain, add: []string{"p 0.9.0 @b =b"},
			want: []string{"p = b", chain[1], "p/b: 0.9.0"}},
		{name: "a default that is not there waits", o: o, add: []string{"p 1.0.0 @c,b =a"},
			want: []string{"p = b", "p/b: 1.0.0", "p/c: 1.0.0"}},
		{name: "the same version", o: o, from: chain, add: []string{"p 1.2.0+1 @b,a"}, kind: edit.ErrGraph,
			text: "Bundle version 1.2.0+1 already added to index"},
		{name: "permissive: the same version", o: edit.AddOptions{Mode: edit.SemVer, Permissive: true}, from: chain,
			add:  []string{"p 1.2.0+1 @b,a", "p 1.5.0 @a"},
			want: []string{"p = a", chain[1] + ", 1.5.0 >1.4.0"}, kind: edit.ErrGraph,
			text: "Bundle version 1.2.0+1 already added to index"},
		{name: "skips of the next higher stay", o: o, from: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.2.0 >1.0.0 !1.1.0"},
			add:  []string{"p 1.1.5 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.5 >1.0.0, 1.2.0 >1.1.5 !1.1.0"}},
		{name: "an edge out of the catalog becomes a skip", o: o, from: []string{"p = a", "p/a: 1.1.0 >1.0.0"},
			add: []string{"p 1.0.5 @a"}, want: []string{"p = a", "p/a: 1.0.5, 1.1.0 >1.0.5 !1.0.0"}},

		{name: "patches are skipped", o: skip,
			add:  []string{"p 1.0.0 @a", "p 1.1.0 @a", "p 1.1.1 @a", "p 1.1.2 @a", "p 1.2.0 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.1, 1.1.2 >1.0.0 !1.1.0 !1.1.1, 1.2.0 >1.1.2"}},
		{name: "nothing but patches", o: skip, add: []string{"p 1.0.0 @a", "p 1.0.1 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.0.1 !1.0.0"}},
		{name: "a patch below a higher minor version", o: skip,
			from: []string{"p = a", "p/a: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0"}, add: []string{"p 1.1.1 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.1.0, 1.1.1 >1.0.0 !1.1.0, 1.2.0 >1.1.1"}},
		{name: "pre-releases of the same patch are no patches", o: skip,
			add:  []string{"p 1.0.0 @a", "p 1.0.2-a @a", "p 1.0.2 @a"},
			want: []string{"p = a", "p/a: 1.0.0, 1.0.2-a !1.0.0, 1.0.2 >1.0.2-a !1.0.0"}},
	} {
		t.Run(c.name, c.run)
	}
}
