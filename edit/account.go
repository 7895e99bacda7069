package edit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// Action is the kind of a change.
type Action string

// The actions.
const (
	Added   Action = "added"
	Removed Action = "removed"
	Changed Action = "changed"
)

// Kind is the kind of a changed part of a catalog.
type Kind string

// The kinds of parts.
const (
	KindPackage        Kind = "package"
	KindDefaultChannel Kind = "default channel"
	KindChannel        Kind = "channel"
	KindHead           Kind = "head"    // of a channel: From and To are bundles
	KindBundle         Kind = "bundle"  // From and To are images, if the bundle was changed
	KindEntry          Kind = "entry"   // a bundle in a channel
	KindReplaces       Kind = "replace" // an edge: Bundle replaces From, then To
	KindSkip           Kind = "skip"    // an edge: Bundle skips From, then To
	KindSkipRange      Kind = "skipRange"
	KindDeprecation    Kind = "deprecation" // From and To are messages
	KindIcon           Kind = "icon"        // From and To are media types and digests
)

// Change is one change made by an edit. An addition has no From, a removal no To.
type Change struct {
	Action  Action `json:"action"`
	Kind    Kind   `json:"kind"`
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	// Why is the reason of the change, unless it is simply what was requested.
	Why string `json:"why,omitempty"`
}

// String formats the change as a line of text.
func (c Change) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", c.Action, c.Kind)
	where := []string{c.Package}
	if c.Channel != "" {
		where = append(where, c.Channel)
	}
	if c.Bundle != "" {
		where = append(where, c.Bundle)
	}
	b.WriteString(" " + strings.Join(where, "/"))
	switch {
	case c.From != "" && c.To != "":
		fmt.Fprintf(&b, ": %s -> %s", c.From, c.To)
	case c.From+c.To != "":
		b.WriteString(": " + c.From + c.To)
	}
	if c.Why != "" {
		b.WriteString(" (" + c.Why + ")")
	}
	return b.String()
}

// Fact explains why a default channel, head or edge of a changed package is what it is.
type Fact struct {
	Kind    Kind   `json:"kind"`
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	Value   string `json:"value"`
	Why     string `json:"why"`
}

// Account describes what an edit did.
type Account struct {
	// Changes are sorted by package, channel, kind and bundle.
	Changes []Change `json:"changes"`
	// Facts are about all changed packages that still exist, sorted in the same way.
	Facts []Fact `json:"facts,omitempty"`
	// Problems are what a permissive edit left out; Notes are remarks about a successful edit.
	Problems []Problem `json:"problems,omitempty"`
	Notes    []Problem `json:"notes,omitempty"`
	// Origins are the declared edges of added bundles, and of those whose declared edges an addition changed, for
	// formats that store them. In the modes semver and semver-skippatch declared edges do not count and are not
	// reported.
	Origins Origins `json:"-"`
}

// Packages returns the sorted names of the changed packages.
func (a *Account) Packages() []string {
	seen := map[string]bool{}
	for _, c := range a.Changes {
		seen[c.Package] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// reasonKey identifies the part that a reason is about.
type reasonKey struct {
	kind                   Kind
	channel, bundle, value string
}

// reasons explain why parts of one package are as they are after an edit, or why they were removed.
type reasons map[reasonKey]string

func (r reasons) set(kind Kind, channel, bundle, value, why string) {
	r[reasonKey{kind, channel, bundle, value}] = why
}

// flat is a package as a set of named parts with values.
type flat map[reasonKey]string

// flatten lists the parts of a package. The key of an edge contains its target, so that edges are added and removed one
// by one.
func flatten(p *part) flat {
	f := flat{}
	if p == nil || p.empty() {
		return f
	}
	f[reasonKey{kind: KindPackage}] = p.name
	f[reasonKey{kind: KindDefaultChannel}] = p.pkg.DefaultChannel
	if i := p.pkg.Icon; i != nil {
		f[reasonKey{kind: KindIcon}] = i.MediaType + " " + i.Digest()
	}
	for name, c := range p.channels {
		f[reasonKey{kind: KindChannel, channel: name}] = ""
		if heads := c.heads(); len(heads) == 1 {
			f[reasonKey{kind: KindHead, channel: name}] = heads[0]
		}
		for bundle, e := range c.entries {
			f[reasonKey{kind: KindEntry, channel: name, bundle: bundle}] = ""
			if e.Replaces != "" {
				f[reasonKey{kind: KindReplaces, channel: name, bundle: bundle}] = e.Replaces
			}
			for _, skip := range e.Skips {
				f[reasonKey{kind: KindSkip, channel: name, bundle: bundle, value: skip}] = skip
			}
			if e.SkipRange != "" {
				f[reasonKey{kind: KindSkipRange, channel: name, bundle: bundle}] = e.SkipRange
			}
		}
	}
	for name, m := range p.bundles {
		f[reasonKey{kind: KindBundle, bundle: name}] = m.blob.Image
	}
	for _, d := range p.deprecations {
		for _, e := range d.Entries {
			key := reasonKey{kind: KindDeprecation}
			switch e.Reference.Schema {
			case declcfg.SchemaChannel:
				key.channel = e.Reference.Name
			case declcfg.SchemaBundle:
				key.bundle = e.Reference.Name
			}
			f[key] = e.Message
		}
	}
	return f
}

// compare adds the differences between two states of a package to the account; either may be nil. A blob that was
// replaced by one with the same image is not detected.
func (a *Account) compare(before, after *part, why reasons) {
	name := ""
	if before != nil {
		name = before.name
	} else if after != nil {
		name = after.name
	}
	old, now := flatten(before), flatten(after)
	change := func(action Action, k reasonKey, from, to string) {
		if k.kind == KindPackage || k.kind == KindEntry || k.kind == KindChannel {
			from, to = "", ""
		}
		reason := why[k]
		reason = cmp.Or(reason, why[reasonKey{k.kind, k.channel, k.bundle, to}])
		a.Changes = append(a.Changes, Change{action, k.kind, name, k.channel, k.bundle, from, to, reason})
	}
	for k, from := range old {
		if to, ok := now[k]; !ok {
			change(Removed, k, from, "")
		} else if to != from {
			change(Changed, k, from, to)
		}
	}
	for k, to := range now {
		if _, ok := old[k]; !ok {
			change(Added, k, "", to)
		}
		switch k.kind {
		case KindHead, KindReplaces, KindSkip, KindSkipRange, KindDefaultChannel:
			f := Fact{k.kind, name, k.channel, k.bundle, to, why[reasonKey{k.kind, k.channel, k.bundle, to}]}
			if f.Why == "" {
				f.Why = asBefore(k.kind)
			}
			a.Facts = append(a.Facts, f)
		}
	}
}

// asBefore returns the reason of a part for which an edit has no other reason.
func asBefore(kind Kind) string {
	if kind == KindHead {
		return "no other entry of the channel replaces or skips it"
	}
	return "the catalog has it so"
}

// News returns the facts about heads, about default channels and about edges that the edit changed, and how many other
// edges the changed packages have.
func (a *Account) News() (news []Fact, same int) {
	type edge struct {
		kind                     Kind
		pkg, channel, bundle, to string
	}
	changed := map[edge]bool{}
	for _, c := range a.Changes {
		changed[edge{c.Kind, c.Package, c.Channel, c.Bundle, c.To}] = true
	}
	for _, f := range a.Facts {
		isEdge := f.Kind == KindReplaces || f.Kind == KindSkip || f.Kind == KindSkipRange
		if isEdge && !changed[edge{f.Kind, f.Package, f.Channel, f.Bundle, f.Value}] {
			same++
			continue
		}
		news = append(news, f)
	}
	return news, same
}

func (a *Account) finish() {
	slices.SortFunc(a.Changes, func(x, y Change) int {
		return cmp.Or(cmp.Compare(x.Package, y.Package), cmp.Compare(x.Channel, y.Channel), cmp.Compare(x.Kind, y.Kind),
			cmp.Compare(x.Bundle, y.Bundle), cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
	})
	slices.SortFunc(a.Facts, func(x, y Fact) int {
		return cmp.Or(cmp.Compare(x.Package, y.Package), cmp.Compare(x.Channel, y.Channel), cmp.Compare(x.Kind, y.Kind),
			cmp.Compare(x.Bundle, y.Bundle), cmp.Compare(x.Value, y.Value))
	})
}
