package edit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// Action is what was done to a part of a catalog.
type Action string

// The actions.
const (
	Added   Action = "added"
	Removed Action = "removed"
	Changed Action = "changed"
)

// Kind names the parts of a catalog that an account is about.
type Kind string

// The kinds of parts.
const (
	KindPackage        Kind = "package"
	KindDefaultChannel Kind = "default channel"
	KindChannel        Kind = "channel"
	KindHead           Kind = "head"    // of a channel: From and To are bundles
	KindBundle         Kind = "bundle"  // From and To are images, if the bundle was changed
	KindEntry          Kind = "entry"   // a bundle's place in a channel
	KindReplaces       Kind = "replace" // an edge: Bundle replaces From, then To
	KindSkip           Kind = "skip"    // an edge: Bundle skips From, then To
	KindSkipRange      Kind = "skipRange"
	KindDeprecation    Kind = "deprecation" // From and To are messages
	KindIcon           Kind = "icon"        // From and To are media types and digests
)

// Change is one thing that an edit did. What was added has no From, and what was removed no To.
type Change struct {
	Action  Action `json:"action"`
	Kind    Kind   `json:"kind"`
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	// Why is the rule by which it was done, where there is more to say than that it was asked for.
	Why string `json:"why,omitempty"`
}

// String is the change as a line of text.
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

// Fact is a default channel, head or edge of a package that an edit changed, and why it is what it is.
type Fact struct {
	Kind    Kind   `json:"kind"`
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	Value   string `json:"value"`
	Why     string `json:"why"`
}

// Account is what an edit did.
type Account struct {
	// Changes are sorted by package, channel, kind and bundle.
	Changes []Change `json:"changes"`
	// Facts are those of all packages that were changed and are still there, sorted in the same way.
	Facts []Fact `json:"facts,omitempty"`
	// Problems are what was left out of a permissive edit, and Notes what is worth knowing of one that was done.
	Problems []Problem `json:"problems,omitempty"`
	Notes    []Problem `json:"notes,omitempty"`
	// Origins are what the added bundles want of themselves, and those whose wishes an addition changed, for formats that
	// store it. In the modes semver and semver-skippatch wishes do not count, and none are reported.
	Origins Origins `json:"-"`
}

// Packages are the names of the packages that were changed, sorted.
func (a *Account) Packages() []string {
	seen := map[string]bool{}
	for _, c := range a.Changes {
		seen[c.Package] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// reasonKey names what a reason is about.
type reasonKey struct {
	kind                   Kind
	channel, bundle, value string
}

// reasons are why parts of one package are as they are after an edit, or why they are gone.
type reasons map[reasonKey]string

func (r reasons) set(kind Kind, channel, bundle, value, why string) {
	r[reasonKey{kind, channel, bundle, value}] = why
}

// flat is a package as a set of named parts with values.
type flat map[reasonKey]string

// flatten lists the parts of a package. Edges have their target in the key, so that they are added and removed one by
// one.
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

// compare adds to the account what is different between two states of a package, of which either may be nil. Blobs that
// were replaced by others of the same image are not seen: see [Account.note].
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
		if reason == "" {
			reason = why[reasonKey{k.kind, k.channel, k.bundle, to}]
		}
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

// asBefore is the reason for what an edit has no other reason for.
func asBefore(kind Kind) string {
	if kind == KindHead {
		return "no other entry of the channel replaces or skips it"
	}
	return "the catalog has it so"
}

// finish brings the account in order.
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
