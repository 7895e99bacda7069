package edit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
)

// TruncateOptions configure [DeprecateTruncate].
type TruncateOptions struct {
	// AllowPackageRemoval removes a package if the heads of all its channels are deprecated.
	AllowPackageRemoval bool
	// AnyImages accepts images that are not pull specs, as [declcfg.Catalog.ValidateAnyImages] does.
	AnyImages bool
	// Permissive skips missing bundles and reports them in Account.Problems.
	Permissive bool
}

// DeprecateTruncate deprecates bundles and removes everything below them in their channels, as opm's deprecatetruncate
// does. Bundles are named by image or as PACKAGE/NAME and processed in this order; one that has already been cut off is
// skipped.
//
// The tail of a bundle is everything that it replaces or skips, recursively. In each channel of the bundle its tail is
// removed; in other channels it stays. Bundles that are in no channel any more are removed. The deprecated bundle loses
// its edges; it gets the property olm.deprecated, by which later additions recognise the end of the graph, and an entry
// in olm.deprecations. Channels of which it is the head are removed, and the bundle with the last of them.
func DeprecateTruncate(c *declcfg.Catalog, bundles []string, o TruncateOptions) (*declcfg.Catalog, *Account, error) {
	targets, problems := find(c, bundles)
	account := &Account{Origins: Origins{}}
	if len(problems) > 0 && !o.Permissive {
		return nil, nil, ErrorOf(problems)
	}
	account.Problems = problems
	names := map[string]bool{}
	for _, t := range targets {
		names[t.Package] = true
	}
	before, problems := split(c, names)
	if len(problems) > 0 {
		return nil, nil, ErrorOf(problems)
	}
	after := map[string]*part{}
	why := map[string]reasons{}
	for name, p := range before {
		after[name], why[name] = p.clone(), reasons{}
	}
	if o.AllowPackageRemoval {
		if problems = removeAllHeads(before, after, targets); len(problems) > 0 {
			return nil, nil, ErrorOf(problems)
		}
	}
	done := map[Name]bool{}
	for _, t := range targets {
		p := after[t.Package]
		if p == nil || p.bundles[t.Bundle] == nil || done[t] {
			continue
		}
		done[t] = true
		if f := p.truncate(t.Bundle, why[t.Package]); f != nil {
			problems = append(problems, *f)
		}
	}
	for _, name := range sorted(after) {
		if p := after[name]; p != nil && len(problems) == 0 {
			problems = append(problems, p.check(o.AnyImages)...)
		}
	}
	if len(problems) > 0 {
		return nil, nil, ErrorOf(problems)
	}
	for name, p := range before {
		account.compare(p, after[name], why[name])
	}
	account.finish()
	return join(c, after), account, nil
}

// find looks bundles up by image or as PACKAGE/NAME.
func find(c *declcfg.Catalog, bundles []string) ([]Name, []Problem) {
	wanted := map[string]bool{}
	for _, b := range bundles {
		wanted[b] = true
	}
	found := map[string][]Name{}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		keys := []string{b.Image, b.Package + "/" + b.Name}
		for _, key := range keys {
			if wanted[key] && key != "" {
				found[key] = append(found[key], Name{b.Package, b.Name})
			}
		}
	}
	var names []Name
	var missing []string
	for _, b := range bundles {
		if len(found[b]) == 0 {
			missing = append(missing, b)
		}
		names = append(names, found[b]...)
	}
	if len(missing) == 0 {
		return names, nil
	}
	return names, []Problem{{Kind: errNoBundle, Image: missing[0],
		Message: fmt.Sprintf("target bundlepaths for deprecation missing from registry: [%s]",
			strings.Join(missing, " "))}}
}

// errNoBundle is the kind of a bundle that is named otherwise than by its image.
var errNoBundle = fault.Advise(ErrNotFound, "name bundles by their images, which \"list bundles\" shows")

// removeAllHeads removes the packages of which the head of the default channel is deprecated: all heads must be
// deprecated then.
func removeAllHeads(before, after map[string]*part, targets []Name) []Problem {
	listed := map[Name]bool{}
	for _, t := range targets {
		listed[t] = true
	}
	var problems []Problem
	for _, name := range sorted(before) {
		p := before[name]
		c := p.channels[p.pkg.DefaultChannel]
		if c == nil || !slices.ContainsFunc(c.heads(), func(h string) bool { return listed[Name{name, h}] }) {
			continue
		}
		complete := true
		for _, channel := range sorted(p.channels) {
			for _, head := range p.channels[channel].heads() {
				if !listed[Name{name, head}] {
					complete = false
					problems = append(problems,
						Problem{Package: name, Channel: channel, Bundle: head, Kind: ErrDefaultChannel,
							Message: fmt.Sprintf(
								"cannot deprecate default channel head from package without removing all other "+
									"channel heads in package %s: must deprecate %s, head of channel %s", name, head,
								channel)})
				}
			}
		}
		if complete {
			after[name] = nil
		}
	}
	return problems
}

// truncate deprecates one bundle of a package.
func (p *part) truncate(name string, why reasons) *Problem {
	tail := map[string]map[string]bool{} // by channel
	for channel, c := range p.channels {
		if _, ok := c.entries[name]; ok {
			tail[channel] = c.below(name)
		}
	}
	if c := p.channels[p.pkg.DefaultChannel]; c != nil {
		for _, head := range c.heads() {
			below := head == name
			for _, t := range tail {
				below = below || t[head]
			}
			if below {
				return &Problem{Package: p.name, Channel: p.pkg.DefaultChannel, Bundle: head,
					Image: p.bundles[name].blob.Image, Kind: ErrDefaultChannel,
					Message: fmt.Sprintf("error deprecating bundle %s: Bundle deprecation causing default channel "+
						"removal: %s is the head of %s, the default channel of package %s",
						imageOrName(p.bundles[name].blob), head, p.pkg.DefaultChannel, p.name)}
			}
		}
	}
	for channel, t := range tail {
		c := p.channels[channel]
		if heads := c.heads(); slices.Contains(heads, name) && len(heads) == 1 {
			delete(p.channels, channel)
			why.set(KindChannel, channel, "", "", "its head "+name+" is deprecated")
			continue
		}
		for bundle := range t {
			delete(c.entries, bundle)
			why.set(KindEntry, channel, bundle, "", "it is below "+name+", which is deprecated")
		}
		e := c.entries[name]
		e.Replaces, e.Skips = "", nil
		c.entries[name] = e
		why.set(KindReplaces, channel, name, "", whyTomb)
	}
	p.bury(name, why)
	for _, bundle := range p.tidy() {
		why.set(KindBundle, "", bundle, "", "it is in no channel any more")
	}
	return nil
}

func imageOrName(b *declcfg.Bundle) string {
	if b.Image == "" {
		return b.Package + "/" + b.Name
	}
	return b.Image
}

// below returns the entries of a channel that a bundle leads to, directly or indirectly.
func (c *channel) below(name string) map[string]bool {
	out := map[string]bool{}
	queue := []string{name}
	for len(queue) > 0 {
		e := c.entries[queue[len(queue)-1]]
		queue = queue[:len(queue)-1]
		for _, next := range append([]string{e.Replaces}, e.Skips...) {
			if _, ok := c.entries[next]; ok && !out[next] && next != name {
				out[next] = true
				queue = append(queue, next)
			}
		}
	}
	return out
}

// bury marks a bundle as deprecated by truncation.
func (p *part) bury(name string, why reasons) {
	m := *p.bundles[name]
	if !m.tombstone {
		blob := *m.blob
		blob.Properties = append(slices.Clone(blob.Properties),
			declcfg.Property{Type: declcfg.PropertyDeprecated, Value: []byte("{}")})
		m.blob, m.tombstone = &blob, true
		p.bundles[name] = &m
	}
	ref := declcfg.Reference{Schema: declcfg.SchemaBundle, Name: name}
	for _, d := range p.deprecations {
		for _, e := range d.Entries {
			if e.Reference == ref {
				return
			}
		}
	}
	p.deprecate(declcfg.DeprecationEntry{Reference: ref, Message: name + " is deprecated. Upgrade to a newer version."})
	why.set(KindDeprecation, "", name, "", "the graph was truncated at it")
}

// deprecate adds or replaces a deprecation.
func (p *part) deprecate(e declcfg.DeprecationEntry) {
	if len(p.deprecations) == 0 {
		p.deprecations = []declcfg.Deprecations{{Package: p.name}}
	}
	for i := range p.deprecations {
		d := &p.deprecations[i]
		for j := range d.Entries {
			if d.Entries[j].Reference == e.Reference {
				d.Entries = slices.Clone(d.Entries)
				d.Entries[j] = e
				return
			}
		}
	}
	last := &p.deprecations[len(p.deprecations)-1]
	last.Entries = append(slices.Clone(last.Entries), e)
}
