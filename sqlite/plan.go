package sqlite

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
)

// plan has the facts about one bundle in its package's channels that the database stores in the bundle's row.
type plan struct {
	skipRange string
	skips     []string
	replaced  []string // bundles that it replaces in its channels, each once; those of the default channel first
	chained   bool     // reachable from the head of some channel by replaces
	head      bool     // head of some channel
	shown     bool     // the head of the default channel, whose ClusterServiceVersion has the package's icon
}

// plan computes the plans from the channels, which are all known when the first bundle comes.
func (p *packageWriter) plan() {
	p.plans = map[string]*plan{}
	defaultChannel := ""
	if len(p.part.Packages) > 0 {
		defaultChannel = p.part.Packages[0].DefaultChannel
	}
	rank := func(c declcfg.Channel) int {
		if c.Name == defaultChannel {
			return 0
		}
		return 1
	}
	sort.SliceStable(p.part.Channels, func(i, j int) bool {
		a, b := p.part.Channels[i], p.part.Channels[j]
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name)) < 0
	})
	first := map[string]string{} // the channel that gave each bundle its skipRange
	for i := range p.part.Channels {
		c := &p.part.Channels[i]
		head := ""
		if heads := slices.Sorted(slices.Values(c.Heads())); len(heads) > 0 {
			head = heads[0] // if there are several, the package is invalid
		}
		p.heads = append(p.heads, head)
		for _, e := range c.Entries {
			b := p.plans[e.Name]
			if b == nil {
				b = &plan{skipRange: e.SkipRange}
				p.plans[e.Name], first[e.Name] = b, c.Name
			}
			if e.SkipRange != b.skipRange {
				p.lost(Finding{Channel: c.Name, Bundle: e.Name, Field: "skipRange",
					Reason: "a bundle has one range in all of its channels in a database, and another one in channel " +
						fault.Quote(first[e.Name])})
			}
			if e.Replaces != "" && !slices.Contains(b.replaced, e.Replaces) {
				b.replaced = append(b.replaced, e.Replaces)
			}
			for _, skip := range e.Skips {
				if !slices.Contains(b.skips, skip) {
					b.skips = append(b.skips, skip)
				}
				if strings.Contains(skip, ",") {
					p.lost(Finding{Channel: c.Name, Bundle: e.Name, Field: "skips",
						Reason: "names of skipped bundles are joined by commas in a database, and this one has a " +
							"comma: " + fault.Quote(skip)})
				}
			}
		}
		if b := p.plans[head]; b != nil {
			b.head = true
			b.shown = b.shown || c.Name == defaultChannel
		}
		p.follow(c, head)
	}
}

// follow marks the bundles on the replaces chain from the head of a channel.
func (p *packageWriter) follow(c *declcfg.Channel, head string) {
	next := map[string]string{}
	for _, e := range c.Entries {
		next[e.Name] = e.Replaces
	}
	for range c.Entries { // stops in a cycle
		if p.plans[head] == nil {
			return
		}
		p.plans[head].chained = true
		head = next[head]
	}
}

// origin returns the declared edges for the columns of a bundle.
func (p *packageWriter) origin(b *declcfg.Bundle, plan *plan, c *csv) (declcfg.Origin, error) {
	if p.options.Origins != nil {
		if o, ok := p.options.Origins(p.name, b.Name); ok {
			for _, text := range []struct{ what, s string }{{"what it replaces", o.Replaces},
				{"what it skips", strings.Join(o.Skips, ",")}, {"what it substitutes for", o.SubstitutesFor}} {
				if err := checkText(text.what, text.s); err != nil {
					return declcfg.Origin{}, err
				}
			}
			return o, nil
		}
	}
	o := declcfg.Origin{Replaces: p.replaces(b, plan, c), Skips: plan.skips}
	if c != nil {
		o.SubstitutesFor = c.substitutesFor
	}
	return o, nil
}

// replaces returns the column value for what a bundle replaces. Readers take the edges from table channel_entry; opm
// uses the column when it adds bundles to the package and computes the channels again.
func (p *packageWriter) replaces(b *declcfg.Bundle, plan *plan, c *csv) string {
	ofCSV := ""
	if c != nil {
		ofCSV = c.replaces
	}
	switch {
	case len(plan.replaced) == 0:
		// opm does not follow the chain below a bundle that is only skipped, or below a deprecated one. At the end of
		// any other chain it would add an edge that no channel has.
		if !plan.chained || slices.ContainsFunc(b.Properties,
			func(p declcfg.Property) bool { return p.Type == declcfg.PropertyDeprecated }) {
			return ofCSV
		}
		return ""
	case len(plan.replaced) == 1:
		return plan.replaced[0]
	}
	chosen := plan.replaced[0]
	if slices.Contains(plan.replaced, ofCSV) {
		chosen = ofCSV
	}
	p.changed(Finding{Bundle: b.Name, Field: "replaces",
		Reason: "the bundle replaces several bundles, each in another channel; where opm adds to the package it " +
			"takes for all of them " + fault.Quote(chosen)})
	return chosen
}
