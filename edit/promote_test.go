package edit_test

import (
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

func TestPromote(t *testing.T) {
	promote := func(p ...edit.Promotion) func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) { return edit.Promote(c, p) }
	}
	to := func(version, channel string) edit.Promotion {
		return edit.Promotion{Package: "p", Bundle: "p.v" + version, Channel: channel}
	}
	fast := "p/fast: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0 !1.1.5 ~<1.2.0, 1.3.0 >1.2.0"
	from := []string{"p = fast", fast, "p/stable: 1.0.0, 1.1.0 >1.0.0"}
	for _, c := range []verbCase{
		{name: "the next one", from: from, do: promote(to("1.2.0", "stable")),
			want: []string{"p = fast", fast, "p/stable: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0 !1.1.5 ~<1.2.0"}},
		{name: "one after the other", from: from, do: promote(to("1.2.0", "stable"), to("1.3.0", "stable")),
			want: []string{"p = fast", fast,
				"p/stable: 1.0.0, 1.1.0 >1.0.0, 1.2.0 >1.1.0 !1.1.5 ~<1.2.0, 1.3.0 >1.2.0"}},
		{name: "one further up skips those between", from: from, do: promote(to("1.3.0", "stable")),
			want: []string{"p = fast", fast, "p/stable: 1.0.0, 1.1.0 >1.0.0, 1.3.0 >1.1.0 !1.2.0"}},
		{name: "where no way leads down it replaces the head",
			from: []string{"p = fast", "p/fast: 2.0.0", "p/stable: 1.0.0"}, do: promote(to("2.0.0", "stable")),
			want: []string{"p = fast", "p/fast: 2.0.0", "p/stable: 1.0.0, 2.0.0 >1.0.0"}},
		{name: "a new channel", from: from, do: promote(to("1.3.0", "new")),
			want: append([]string{"p/new: 1.3.0 >1.2.0"}, from...)},
		{name: "and the default", from: from,
			do:   promote(edit.Promotion{Package: "p", Bundle: "p.v1.1.0", Channel: "stable", Default: true}),
			want: []string{"p = stable", fast, from[2]}},
		{name: "lower than the head", from: []string{"p = fast", fast, "p/stable: 1.2.0"},
			do: promote(to("1.1.0", "stable")), kind: edit.ErrGraph,
			text: `bundle "p.v1.1.0" (1.1.0) is not higher than "p.v1.2.0" (1.2.0), the head of channel "stable" of package "p"`},
		{name: "one that would leave others behind",
			from: []string{"p = fast", "p/fast: 1.0.0, 1.2.0 >1.0.0", "p/stable: 1.0.0, 1.1.0 >1.0.0"},
			do:   promote(to("1.2.0", "stable")), kind: edit.ErrGraph, text: "p.v1.1.0"},
		{name: "it is there", from: from, do: promote(to("1.1.0", "stable")), kind: edit.ErrVersionExists,
			text: "already"},
		{name: "what is not there", from: from, do: promote(to("9.0.0", "stable"), edit.Promotion{Package: "x"}),
			kind: edit.ErrNotFound,
			text: "package \"p\" has no bundle \"p.v9.0.0\"\npackage \"x\" is not in the catalog"},
		{name: "no channel", from: from, do: promote(to("1.1.0", "")), kind: edit.ErrInvalid, text: "without a name"},
	} {
		t.Run(c.name, c.run)
	}
}
