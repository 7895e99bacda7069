package filter_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// small is a catalog with everything that dependencies, lost versions and default channels need:
//
//	app: stable 1.0.0 <- 1.1.0 <- 2.0.0 (skipRange <0.5.0, needs db and a kind), old 1.0.0 <- 1.1.0
//	db: stable 1.0.0 <- 1.2.0, beta 2.0.0 (provides the kind)
//	none: a channel without a default channel
func small() *declcfg.Catalog {
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "app", DefaultChannel: "stable"},
		{Name: "db", DefaultChannel: "stable"}, {Name: "none"}},
		Deprecations: []declcfg.Deprecations{{Package: "app", Entries: []declcfg.DeprecationEntry{
			{Reference: declcfg.Reference{Schema: "olm.channel", Name: "old"}, Message: "m"},
			{Reference: declcfg.Reference{Schema: "olm.bundle", Name: "app.v1.0.0"}, Message: "m"}}}},
		Others: []declcfg.Meta{{Schema: "x", Package: "db"}, {Schema: "y"}}}
	bundle := func(pkg, version string, p ...declcfg.Property) {
		c.Bundles = append(c.Bundles, declcfg.Bundle{Name: pkg + ".v" + version, Package: pkg,
			Image:      "r.example.com/" + pkg + ":v" + version,
			Properties: append([]declcfg.Property{packageProperty(pkg, version)}, p...)})
	}
	gvk := json.RawMessage(`{"group":"g.example.com","kind":"K","version":"v1"}`)
	bundle("app", "1.0.0")
	bundle("app", "1.1.0")
	bundle("app", "2.0.0",
		declcfg.Property{Type: "olm.package.required",
			Value: json.RawMessage(`{"packageName":"db","versionRange":">=1.1.0"}`)},
		declcfg.Property{Type: "olm.gvk.required", Value: gvk})
	bundle("db", "1.0.0")
	bundle("db", "1.2.0")
	bundle("db", "2.0.0", declcfg.Property{Type: "olm.gvk", Value: gvk})
	bundle("none", "1.0.0")
	e := func(name, replaces string) declcfg.ChannelEntry {
		return declcfg.ChannelEntry{Name: name, Replaces: replaces}
	}
	last := e("app.v2.0.0", "app.v1.1.0")
	last.SkipRange = "<0.5.0"
	c.Channels = []declcfg.Channel{
		{Name: "stable", Package: "app",
			Entries: []declcfg.ChannelEntry{e("app.v1.0.0", ""), e("app.v1.1.0", "app.v1.0.0"),
				last}},
		{Name: "old", Package: "app",
			Entries: []declcfg.ChannelEntry{e("app.v1.0.0", ""), e("app.v1.1.0", "app.v1.0.0")}},
		{Name: "stable", Package: "db",
			Entries: []declcfg.ChannelEntry{e("db.v1.0.0", ""), e("db.v1.2.0", "db.v1.0.0")}},
		{Name: "beta", Package: "db", Entries: []declcfg.ChannelEntry{e("db.v2.0.0", "")}},
		{Name: "a", Package: "none", Entries: []declcfg.ChannelEntry{e("none.v1.0.0", "")}},
	}
	return c
}

func app(p imageset.Package) imageset.Operator {
	p.Name = "app"
	return imageset.Operator{Packages: []imageset.Package{p}}
}

// What is wrong beyond the first hundred problems is counted.
func TestManyProblemsAreCounted(t *testing.T) {
	var op imageset.Operator
	for i := range 130 {
		op.Packages = append(op.Packages, imageset.Package{Name: fmt.Sprintf("p%d", i)})
	}
	_, err := filter.Options{Strict: true}.Apply(small(), op)
	if err == nil || strings.Count(err.Error(), "\n") != 100 || !strings.HasSuffix(err.Error(), "\n... and 30 more problems") {
		t.Errorf("%v", err)
	}
}

func TestProblems(t *testing.T) {
	old := []imageset.Channel{{Name: "old"}}
	for name, c := range map[string]struct {
		op   imageset.Operator
		o    filter.Options
		want []string // parts of LEVEL CODE PACKAGE/CHANNEL TEXT (FIX); "fails" first if nothing is filtered
	}{
		"an unknown package": {imageset.Operator{Packages: []imageset.Package{{Name: "ap"}, {Name: "db"}}},
			filter.Options{},
			[]string{"warning unknown-package ap/ it is not in the catalog (perhaps app)"}},
		"an unknown package, strict": {imageset.Operator{Packages: []imageset.Package{{Name: "ap"}}},
			filter.Options{Strict: true}, []string{"fails", "error unknown-package ap/"}},
		"nothing but an unknown package": {imageset.Operator{Packages: []imageset.Package{{Name: "ap"}}},
			filter.Options{},
			[]string{"error nothing-kept", "warning unknown-package"}},
		"an unknown channel": {app(imageset.Package{Channels: []imageset.Channel{{Name: "stable"}, {Name: "stabel"}}}),
			filter.Options{}, []string{"warning unknown-channel app/stabel it is not in the package (perhaps stable)"}},
		"an unknown channel, strict": {app(imageset.Package{Channels: []imageset.Channel{{Name: "stabel"}}}),
			filter.Options{Strict: true}, []string{"fails", "error unknown-channel", "error missing-default-channel"}},
		"no default channel": {app(imageset.Package{Channels: old}), filter.Options{},
			[]string{"fails", "error missing-default-channel app/stable", "(write defaultChannel: old)"}},
		"the default channel is chosen": {app(imageset.Package{Channels: old}),
			filter.Options{AutoDefaultChannel: true},
			[]string{"warning chosen-default-channel app/old it becomes the default channel"}},
		"an unknown default channel": {app(imageset.Package{DefaultChannel: "x"}),
			filter.Options{AutoDefaultChannel: true},
			[]string{"fails", "error missing-default-channel app/x specified", "one of old stable"}},
		"an empty default channel": {app(imageset.Package{DefaultChannel: "old", MinVersion: "2.0.0"}),
			filter.Options{},
			[]string{"error empty-default-channel app/old", "(write defaultChannel: stable)"}},
		"an empty channel": {app(imageset.Package{MinVersion: "2.0.0"}), filter.Options{},
			[]string{"warning empty-channel app/old", "versions from 1.0.0 to 1.1.0"}},
		"nothing in the range": {app(imageset.Package{MinVersion: "3"}), filter.Options{},
			[]string{"fails", "error empty-default-channel app/stable", "versions from 1.0.0 to 2.0.0"}},
		"one version, which the default channel has not": {app(imageset.Package{MinVersion: "2.0.0",
			MaxVersion:     "2.0.0",
			DefaultChannel: "old"}), filter.Options{}, []string{"error empty-default-channel app/old"}},
		"one version that is not there": {app(imageset.Package{MinVersion: "9.0.0", MaxVersion: "9.0.0"}),
			filter.Options{},
			[]string{"fails", "error version-not-found"}},
		"full with versions": {imageset.Operator{Full: true,
			Packages: []imageset.Package{{Name: "app", MinVersion: "1"}}},
			filter.Options{}, []string{"fails", "error full-with-versions"}},
		"a package without a default channel": {imageset.Operator{Packages: []imageset.Package{{Name: "none"}}},
			filter.Options{}, []string{"error invalid-catalog none/ default channel must be set"}},
		"which is chosen": {imageset.Operator{Packages: []imageset.Package{{Name: "none"}}},
			filter.Options{AutoDefaultChannel: true}, []string{"warning chosen-default-channel none/a"}},
		"dependencies": {app(imageset.Package{MinVersion: "2.0.0"}), filter.Options{}, []string{
			`warning unsatisfied-dependency app/ bundle "app.v2.0.0" needs package "db" >=1.1.0 (olm.package.required)`,
			`needs K.v1.g.example.com (olm.gvk.required)`}},
		"installed versions": {app(imageset.Package{}), filter.Options{Installed: []filter.Installed{{"app", "1.0.0"},
			{"app", "0.4.0"}, {"app", "0.9.0"}, {"db", "1.0.0"}, {"app", "x"}}}, []string{
			`warning unknown-installed app/ the installed version "0.4.0" is not in the catalog`,
			`warning lost-installed app/ the installed version "0.9.0" cannot be upgraded`,
			`warning lost-installed app/stable the installed version "1.0.0" cannot be upgraded`,
			"nothing of the package is kept",
			"is no semantic version"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := c.o.Apply(small(), c.op)
			if fails := c.want[0] == "fails"; fails != (err != nil) {
				t.Fatalf("got %v", err)
			}
			var problems []filter.Problem
			if err != nil {
				problems = err.(*filter.Error).Problems
				c.want = c.want[1:]
			} else {
				problems = r.Problems
				if r.Refused() != strings.HasPrefix(c.want[0], "error") {
					t.Errorf("refused: %t", r.Refused())
				}
			}
			var all strings.Builder
			for _, p := range problems {
				all.WriteString(string(
					p.Level) + " " + p.Code + " " + p.Package + "/" + p.Channel + " " + p.Text + " (" +
					p.Fix + ")\n")
			}
			for _, want := range c.want {
				if !strings.Contains(all.String(), want) {
					t.Errorf("no %s in\n%s", want, all.String())
				}
			}
		})
	}
}

// What is needed is added, from the channel that has it, and explained.
func TestDependenciesAreAdded(t *testing.T) {
	op := app(imageset.Package{MinVersion: "2.0.0"})
	r, err := filter.Options{Dependencies: true}.Apply(small(), op)
	if err != nil || r.Refused() {
		t.Fatal(err, r)
	}
	if got := strings.Join(r.Kept["db"].Bundles, " "); got != "db.v1.2.0 db.v2.0.0" {
		t.Errorf("got %s", got)
	}
	if len(r.Dependencies) != 2 || r.Dependencies[0].Bundle != "db.v1.2.0" ||
		r.Dependencies[0].ByBundle != "app.v2.0.0" ||
		r.Dependencies[1].Channel != "beta" || r.Others != 2 || !strings.Contains(r.Why["db/beta"], "K.v1") {
		t.Errorf("got %+v, %v", r.Dependencies, r.Why)
	}
	op.SkipDependencies = true
	if r, err = (filter.Options{Dependencies: true}).Apply(small(), op); err != nil || len(r.Kept) != 1 ||
		slices.ContainsFunc(r.Problems, func(p filter.Problem) bool { return p.Code == filter.Unsatisfied }) {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A package that is kept only for a channel other than its default one gets that as its default.
func TestDependencyFromAnotherChannel(t *testing.T) {
	c := small()
	c.Bundles[2].Properties = c.Bundles[2].Properties[:1:1]
	c.Bundles[2].Properties = append(c.Bundles[2].Properties, declcfg.Property{Type: "olm.constraint",
		Value: json.RawMessage(`{"failureMessage":"need it","all":{"constraints":[{"gvk":{"group":"g.example.com",` +
			`"kind":"K","version":"v1"}},{"package":{"packageName":"db","versionRange":">1.0.0"}}]}}`)})
	r, err := filter.Options{Dependencies: true}.Apply(c, app(imageset.Package{}))
	if err != nil || r.Refused() || r.Kept["db"].DefaultChannel != "beta" || len(r.Kept["db"].Channels) != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestConstraints(t *testing.T) {
	const is2 = `{"package":{"packageName":"app","versionRange":"2.0.0"}}]}}`
	for value, want := range map[string]string{
		`{"package":{"packageName":"app","versionRange":">=2.0.0"}}`:                         "",
		`{"package":{"packageName":"app","versionRange":">2.0.0"}}`:                          "unsatisfied-dependency",
		`{"package":{"packageName":"app","versionRange":"x"}}`:                               "unreadable-dependency",
		`{"any":{"constraints":[{"gvk":{"group":"a"}},` + is2:                                "",
		`{"all":{"constraints":[{"gvk":{"group":"a"}},` + is2:                                "unsatisfied-dependency",
		`{"not":{"constraints":[{"package":{"packageName":"app","versionRange":"9.0.0"}}]}}`: "",
		`{"cel":{"rule":"properties.exists(p, true)"}}`:                                      "unreadable-dependency",
		`{}`:                         "unreadable-dependency",
		`[]`:                         "unreadable-dependency",
		`{"all":{"constraints":[]}}`: "unreadable-dependency",
		strings.Repeat(`{"all":{"constraints":[`, 50) + strings.Repeat("]}}", 50): "unreadable-dependency",
	} {
		c := small()
		c.Bundles[2].Properties = []declcfg.Property{c.Bundles[2].Properties[0],
			{Type: "olm.constraint", Value: json.RawMessage(value)}}
		r, err := filter.Options{}.Apply(c, app(imageset.Package{}))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range r.Problems {
			if strings.HasSuffix(p.Code, "dependency") {
				got = p.Code
			}
		}
		if got != want {
			t.Errorf("%.80s: got %q, want %q", value, got, want)
		}
	}
}

// What another catalog of the image set provides is not missing.
func TestSettle(t *testing.T) {
	a, err := filter.Options{}.Apply(small(), app(imageset.Package{}))
	if err != nil {
		t.Fatal(err)
	}
	b, err := filter.Options{}.Apply(small(), imageset.Operator{Packages: []imageset.Package{{Name: "db"}}})
	if err != nil {
		t.Fatal(err)
	}
	before := len(a.Problems)
	filter.DropMetDependencies([]*filter.Result{a, b})
	if before != 2 || len(a.Problems) != 0 {
		t.Errorf("%d, then %v", before, a.Problems)
	}
}

func TestLost(t *testing.T) {
	r, err := filter.Options{}.Apply(small(), app(imageset.Package{}))
	if err != nil {
		t.Fatal(err)
	}
	want := filter.Lost{Package: "app", Channel: "stable", Head: "app.v2.0.0", Fix: "minVersion: 1.0.0 keeps their way"}
	if len(r.Lost) != 1 || r.Lost[0].Head != want.Head || len(r.Lost[0].Versions) != 1 ||
		r.Lost[0].Versions[0].Bundle != "app.v1.0.0" || r.Lost[0].Versions[0].Version != "1.0.0" ||
		r.Lost[0].Fix != want.Fix || r.Lost[0].Channel != want.Channel {
		t.Errorf("got %+v", r.Lost)
	}
	r, err = filter.Options{}.Apply(small(), app(imageset.Package{MinVersion: "1.0.0"}))
	if err != nil || len(r.Lost) != 0 {
		t.Errorf("got %+v, %v", r.Lost, err)
	}
}

// The published catalog has no channel, deprecation or default channel that cannot stand; with Compat it has.
func TestRepairs(t *testing.T) {
	op := app(imageset.Package{MinVersion: "2.0.0", MaxVersion: "2.0.0"})
	r, err := filter.Options{}.Apply(small(), op)
	if err != nil || r.Refused() || len(r.Kept["app"].Channels) != 2 || len(r.Catalog.Channels) != 1 ||
		len(r.Catalog.Deprecations) != 0 || r.Catalog.Validate() != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err = (filter.Options{Compat: true}).Apply(small(), op); err != nil || r.Refused() ||
		len(r.Catalog.Channels) != 2 || len(r.Catalog.Deprecations) != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
	if got := strings.Join(r.Account.Packages(), " "); got != "app db none" {
		t.Errorf("got %s", got)
	}
}

// A bundle that is kept because an entry replaces it, and that no kept channel has, gets an entry in the published
// catalog.
func TestBundleOfAnotherChannel(t *testing.T) {
	c := small()
	c.Channels[0].Entries = c.Channels[0].Entries[1:] // app.v1.1.0 replaces app.v1.0.0, which only the channel old has
	op := app(
		imageset.Package{Channels: []imageset.Channel{{Name: "stable", MinVersion: "1.0.0", MaxVersion: "1.1.0"}}})
	r, err := filter.Options{}.Apply(c, op)
	if err != nil || r.Refused() {
		t.Fatal(err, r.Problems)
	}
	if got := strings.Join(r.Kept["app"].Bundles, " "); got != "app.v1.0.0 app.v1.1.0" ||
		len(r.Kept["app"].Channels["stable"]) != 1 || len(r.Catalog.Channels[0].Entries) != 2 ||
		r.Catalog.Validate() != nil {
		t.Errorf("got %s, %+v", got, r.Catalog.Channels)
	}
	if !slices.ContainsFunc(r.Problems, func(p filter.Problem) bool { return p.Code == filter.EntryAdded }) {
		t.Errorf("%v", r.Problems)
	}
}

func FuzzConstraint(f *testing.F) {
	f.Add(`{"all":{"constraints":[{"cel":{"rule":"x"}}]}}`, "olm.constraint")
	f.Add(`{"packageName":"db","versionRange":">1"}`, "olm.package.required")
	f.Add(`{"group":"g","kind":"K","version":"v1"}`, "olm.gvk.required")
	f.Fuzz(func(t *testing.T, value, kind string) {
		if !json.Valid([]byte(value)) {
			return
		}
		c := small()
		c.Bundles[2].Properties = append(c.Bundles[2].Properties[:1:1],
			declcfg.Property{Type: kind, Value: json.RawMessage(value)})
		for _, o := range []filter.Options{{}, {Dependencies: true}} {
			if r, err := o.Apply(c, app(imageset.Package{})); err == nil && r.Kept["app"] == nil {
				t.Error("the package is gone")
			}
		}
	})
}

// A bundle of the one version that is requested is kept as oc-mirror keeps it, whether or not a selected channel has
// it. A catalog with a bundle in no channel is not valid, so that it is not published.
func TestVersionThatTheChannelHasNot(t *testing.T) {
	c := small()
	c.Deprecations[0].Entries = append(c.Deprecations[0].Entries, declcfg.DeprecationEntry{
		Reference: declcfg.Reference{Schema: "olm.bundle", Name: "app.v2.0.0"}, Message: "m"})
	c.Packages[0].DefaultChannel = "old"
	c.Channels = append(c.Channels, declcfg.Channel{Name: "older", Package: "app",
		Entries: []declcfg.ChannelEntry{{Name: "app.v1.0.0"}}})
	r, err := filter.Options{}.Apply(c, app(imageset.Package{Channels: []imageset.Channel{{Name: "old"},
		{Name: "older", MinVersion: "2.0.0", MaxVersion: "2.0.0"}}}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(r.Kept)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"app":{"defaultChannel":"old","channels":{"old":[["app.v1.1.0","app.v1.0.0"]],"older":[]},` +
		`"bundles":["app.v1.1.0","app.v2.0.0"],"deprecations":["bundle/app.v2.0.0","channel/old"]}}`
	if string(got) != want {
		t.Errorf("kept\n%s\nwant\n%s", got, want)
	}
	if r.Refused() || len(r.Catalog.Bundles) != 1 || len(r.Catalog.Channels) != 1 ||
		len(r.Catalog.Deprecations[0].Entries) != 1 {
		t.Errorf("refused %t, published %+v", r.Refused(), r.Catalog)
	}
	if !slices.ContainsFunc(r.Problems, func(p filter.Problem) bool {
		return p.Code == filter.NoChannel && p.Bundle == "app.v2.0.0"
	}) {
		t.Errorf("problems %v", r.Problems)
	}
}
