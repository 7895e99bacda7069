package edit

import (
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// Promotion adds an existing bundle to another channel of its package, which may be new.
type Promotion struct {
	Package, Bundle, Channel string
	// Default makes the channel the default channel of the package.
	Default bool
}

// Promote adds bundles as heads of channels, in the given order. A bundle takes its edges from its entry in another
// channel, the default channel first. Following replaces from there, it replaces the first bundle that is in the new
// channel and skips those before it; if there is none, it replaces the head of the channel. Its version must be higher
// than the head's. In a new channel the bundle keeps its edges, which then lead out of the channel.
func Promote(c *declcfg.Catalog, promotions []Promotion) (*declcfg.Catalog, *Account, error) {
	names := map[string]bool{}
	for _, m := range promotions {
		names[m.Package] = true
	}
	before, problems := split(c, names)
	after := map[string]*part{}
	why := map[string]reasons{}
	for name, p := range before {
		after[name], why[name] = p.clone(), reasons{}
	}
	for _, m := range promotions {
		if p := m.apply(after[m.Package], why[m.Package]); p != nil {
			p.Package, p.Channel, p.Bundle = m.Package, m.Channel, m.Bundle
			problems = append(problems, *p)
		}
	}
	for _, name := range sorted(after) {
		if len(problems) == 0 {
			problems = append(problems, after[name].check(false)...)
		}
	}
	if len(problems) > 0 {
		return nil, nil, ErrorOf(problems)
	}
	account := &Account{Origins: Origins{}}
	for name, p := range before {
		account.compare(p, after[name], why[name])
	}
	account.finish()
	return join(c, after), account, nil
}

func (m Promotion) apply(p *part, why reasons) *Problem {
	switch {
	case p == nil:
		return &Problem{Kind: ErrNotFound, Message: fmt.Sprintf("package %q is not in the catalog", m.Package)}
	case p.bundles[m.Bundle] == nil:
		return &Problem{Kind: ErrNotFound, Message: fmt.Sprintf("package %q has no bundle %q", m.Package, m.Bundle)}
	case m.Channel == "":
		return &Problem{Kind: ErrInvalid,
			Message: fmt.Sprintf("bundle %q is to be promoted to a channel without a name", m.Bundle)}
	}
	if m.Default {
		p.pkg.DefaultChannel = m.Channel
		why.set(KindDefaultChannel, "", "", m.Channel, "it was asked for")
	}
	c := p.channels[m.Channel]
	if c == nil {
		c = newChannel(p.name, m.Channel)
		p.channels[m.Channel] = c
	}
	if _, ok := c.entries[m.Bundle]; ok {
		if m.Default {
			return nil
		}
		return &Problem{Kind: ErrVersionExists,
			Message: fmt.Sprintf("bundle %q is in channel %q of package %q already", m.Bundle, m.Channel, m.Package)}
	}
	e, from := p.entryOf(m.Bundle)
	heads := c.heads()
	if len(c.entries) > 0 {
		if len(heads) != 1 || p.bundles[heads[0]] == nil {
			return &Problem{Kind: ErrGraph,
				Message: fmt.Sprintf("channel %q of package %q has no one head: %v", m.Channel, m.Package, heads)}
		}
		head := p.bundles[heads[0]]
		if order, err := p.bundles[m.Bundle].version.withBuild(head.version); err != nil || order <= 0 {
			return &Problem{Kind: ErrGraph,
				Message: fmt.Sprintf("bundle %q (%s) is not higher than %q (%s), the head of channel %q of package %q",
					m.Bundle, p.bundles[m.Bundle].version, head.blob.Name, head.version, m.Channel, m.Package)}
		}
		e.Replaces, e.Skips = c.onTop(e, from, head.blob.Name)
		why.set(KindReplaces, m.Channel, m.Bundle, e.Replaces,
			"it is the first bundle of the channel on the way down, or its head")
	}
	c.entries[m.Bundle] = e
	why.set(KindHead, m.Channel, "", m.Bundle, "it was promoted")
	return nil
}

// entryOf returns the entry of a bundle in the first channel where it has edges, or else where it exists.
func (p *part) entryOf(bundle string) (declcfg.ChannelEntry, *channel) {
	found, from := declcfg.ChannelEntry{Name: bundle}, (*channel)(nil)
	for _, name := range p.channelsDefaultFirst() {
		e, ok := p.channels[name].entries[bundle]
		if !ok {
			continue
		}
		if e.Replaces != "" || len(e.Skips) > 0 {
			return e, p.channels[name]
		}
		if from == nil {
			found, from = e, p.channels[name]
		}
	}
	return found, from
}

// onTop returns the edges of an entry of another channel when it becomes the head of c.
func (c *channel) onTop(e declcfg.ChannelEntry, from *channel, head string) (replaces string, skips []string) {
	skips = slices.Clone(e.Skips)
	seen := map[string]bool{}
	at := e.Replaces
	for at != "" && from != nil && !seen[at] {
		if _, ok := c.entries[at]; ok {
			break
		}
		seen[at] = true
		skips = append(skips, at)
		at = from.entries[at].Replaces
	}
	if _, ok := c.entries[at]; !ok {
		at = head
	}
	return at, clean(skips)
}
