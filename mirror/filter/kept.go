package filter

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// Kept is what oc-mirror keeps of a catalog, by package.
type Kept map[string]*keptPackage

// keptPackage is what is kept of a package.
type keptPackage struct {
	// DefaultChannel need not be one of Channels, and may be empty.
	DefaultChannel string `json:"defaultChannel"`
	// Channels have their entries in the order of the catalog. A channel may have none.
	Channels map[string][]Entry `json:"channels"`
	// Bundles are the names of the kept bundles, sorted. An entry may have no bundle.
	Bundles []string `json:"bundles"`
	// Deprecations are SCHEMA/NAME of the kept deprecations, without olm., sorted; "package" is the package itself.
	Deprecations []string `json:"deprecations,omitempty"`
}

// Entry is an entry of a channel. Its JSON is a list of name, replaces, skips and skipRange, without empty ones at the
// end.
type Entry struct{ declcfg.ChannelEntry }

// MarshalJSON implements [json.Marshaler].
func (e Entry) MarshalJSON() ([]byte, error) {
	skips := e.Skips
	if skips == nil {
		skips = []string{}
	}
	list := []any{e.Name, e.Replaces, skips, e.SkipRange}
	switch {
	case e.SkipRange != "":
	case len(e.Skips) > 0:
		list = list[:3]
	case e.Replaces != "":
		list = list[:2]
	default:
		list = list[:1]
	}
	return json.Marshal(list)
}

func describeKept(c *declcfg.Catalog) Kept {
	out := Kept{}
	get := func(name string) *keptPackage {
		if out[name] == nil {
			out[name] = &keptPackage{Channels: map[string][]Entry{}, Bundles: []string{}}
		}
		return out[name]
	}
	for i := range c.Packages {
		get(c.Packages[i].Name).DefaultChannel = c.Packages[i].DefaultChannel
	}
	for i := range c.Channels {
		ch := &c.Channels[i]
		if out[ch.Package] == nil {
			continue
		}
		entries := make([]Entry, len(ch.Entries))
		for j, e := range ch.Entries {
			entries[j] = Entry{e}
		}
		get(ch.Package).Channels[ch.Name] = entries
	}
	for i := range c.Bundles {
		if p := out[c.Bundles[i].Package]; p != nil {
			p.Bundles = append(p.Bundles, c.Bundles[i].Name)
		}
	}
	for i := range c.Deprecations {
		p := out[c.Deprecations[i].Package]
		if p == nil {
			continue
		}
		for _, e := range c.Deprecations[i].Entries {
			name := schemaName(e.Reference.Schema)
			if e.Reference.Name != "" {
				name += "/" + e.Reference.Name
			}
			p.Deprecations = append(p.Deprecations, name)
		}
	}
	for _, p := range out {
		slices.Sort(p.Bundles)
		slices.Sort(p.Deprecations)
	}
	return out
}

// schemaName returns the name of a schema without olm.
func schemaName(schema string) string {
	const prefix = "olm."
	if len(schema) > len(prefix) && schema[:len(prefix)] == prefix {
		return schema[len(prefix):]
	}
	return schema
}

// Names returns the names of the packages, sorted.
func (k Kept) Names() []string { return slices.Sorted(maps.Keys(k)) }

// images counts the different images that bundles have and name.
func images(bundles []declcfg.Bundle) int {
	all := map[string]bool{}
	for i := range bundles {
		all[bundles[i].Image] = true
		for _, r := range bundles[i].RelatedImages {
			all[r.Image] = true
		}
	}
	delete(all, "")
	return len(all)
}
