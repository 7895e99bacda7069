package declcfg

import (
	"maps"
	"slices"
)

// Upgrades has the edges of a channel's upgrade graph: an entry leads to the names that it replaces and skips, which need
// not have entries. Of several entries with one name the first counts. To build it takes time linear in the edges, and so
// does every question about it. It shares the memory of the entries, and may be read concurrently.
type Upgrades struct {
	entries []ChannelEntry
	names   map[string]mark
}

// mark says what leads to a name.
type mark struct {
	entry             int // the index of its entry, counted from 1; 0 if it has none
	replaced, skipped bool
}

// Upgrades returns the edges of the channel.
func (c *Channel) Upgrades() *Upgrades { return UpgradesOf(c.Entries) }

// UpgradesOf returns the edges of entries.
func UpgradesOf(entries []ChannelEntry) *Upgrades {
	u := &Upgrades{entries, make(map[string]mark, len(entries))}
	for i := range entries {
		e := &entries[i]
		m := u.names[e.Name]
		if m.entry > 0 {
			continue
		}
		m.entry = i + 1
		u.names[e.Name] = m
		if m := u.names[e.Replaces]; e.Replaces != "" && !m.replaced {
			m.replaced = true
			u.names[e.Replaces] = m
		}
		for _, skip := range e.Skips {
			if m := u.names[skip]; !m.skipped {
				m.skipped = true
				u.names[skip] = m
			}
		}
	}
	return u
}

// Has reports whether the name has an entry, or an entry replaces or skips it.
func (u *Upgrades) Has(name string) bool { _, ok := u.names[name]; return ok }

// Entry returns the entry of a name; nil if it has none.
func (u *Upgrades) Entry(name string) *ChannelEntry {
	if i := u.names[name].entry; i > 0 {
		return &u.entries[i-1]
	}
	return nil
}

// Skipped reports whether an entry skips the name.
func (u *Upgrades) Skipped(name string) bool { return u.names[name].skipped }

// OnlySkipped reports whether entries skip the name, and none replaces it.
func (u *Upgrades) OnlySkipped(name string) bool { m := u.names[name]; return m.skipped && !m.replaced }

// IsHead reports whether the name has an entry and no entry replaces or skips it.
func (u *Upgrades) IsHead(name string) bool {
	m := u.names[name]
	return m.entry > 0 && !m.replaced && !m.skipped
}

// Heads returns the names of the entries that no entry replaces or skips, in their order. A valid channel has one.
func (u *Upgrades) Heads() []string {
	var heads []string
	for i := range u.entries {
		if name := u.entries[i].Name; u.IsHead(name) && u.names[name].entry == i+1 {
			heads = append(heads, name)
		}
	}
	return heads
}

// Chain returns a name and what is replaced from there on, each once. The last name need not have an entry. The chain
// ends before a name for which ends, unless nil, returns true. again is the index of the name that the last one
// replaces, if the chain ends in a cycle, else -1.
func (u *Upgrades) Chain(from string, ends func(name string) bool) (chain []string, again int) {
	at := map[string]int{}
	for name := from; ; {
		at[name] = len(chain)
		chain = append(chain, name)
		e := u.Entry(name)
		if e == nil || e.Replaces == "" {
			return chain, -1
		}
		if i, ok := at[e.Replaces]; ok {
			return chain, i
		}
		if name = e.Replaces; ends != nil && ends(name) {
			return chain, -1
		}
	}
}

// Cyclic reports whether edges of either kind form a cycle.
func (u *Upgrades) Cyclic() bool { return len(u.Cycle()) > 0 }

// Cycle returns the names of a cycle of edges of either kind, each leading to the next and the last to the first; nil if
// there is none.
func (u *Upgrades) Cycle() []string {
	above := make(map[string]int, len(u.names)) // how many edges lead to a name
	each := func(name string, visit func(below string)) {
		if e := u.Entry(name); e != nil {
			if e.Replaces != "" {
				visit(e.Replaces)
			}
			for _, skip := range e.Skips {
				visit(skip)
			}
		}
	}
	for name := range u.names {
		each(name, func(below string) { above[below]++ })
	}
	// Names are taken off from above; those of a cycle, and what is below them, are left over.
	var free []string
	for name := range u.names {
		if above[name] == 0 {
			free = append(free, name)
		}
	}
	left := len(u.names)
	for ; len(free) > 0; left-- {
		name := free[len(free)-1]
		free = free[:len(free)-1]
		each(name, func(below string) {
			if above[below]--; above[below] == 0 {
				free = append(free, below)
			}
		})
	}
	if left == 0 {
		return nil
	}
	// Each name that is left over has one above it, so that the way up from any of them ends in a cycle.
	up := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(u.names)) {
		if above[name] > 0 {
			each(name, func(below string) { up[below] = name })
		}
	}
	var way []string
	at := map[string]int{}
	for name := slices.Min(slices.Collect(maps.Keys(up))); ; name = up[name] {
		if i, again := at[name]; again {
			slices.Reverse(way[i:])
			return way[i:]
		}
		at[name] = len(way)
		way = append(way, name)
	}
}
