package serve

import (
	"slices"
	"sort"

	"github.com/operator-bindery/bindery/serve/internal/counted"
)

// catalog is a store with the data for questions across packages. It counts the calls that use it: a replaced catalog
// is closed after its last call, and no call sees parts of two catalogs.
type catalog struct {
	store    Store
	packages []*Package // those with an olm.package blob, sorted by name
	byName   map[string]*Package
	customs  map[string]*Package // including those of no package
	channels []channelRef        // sorted by channel, then package: the order of ListBundles
	pages    *pages              // the answers of ListBundles

	users counted.Users
}

type channelRef struct {
	pkg     *Package
	channel *indexChannel
}

// newCatalog returns a catalog of a store. pageMemory limits the bytes of ListBundles answers in memory.
func newCatalog(s Store, pageMemory int) *catalog {
	c := &catalog{store: s, byName: map[string]*Package{}, customs: map[string]*Package{}}
	for _, p := range s.Packages() {
		c.customs[p.name] = p
		if p.hasPackage {
			c.byName[p.name] = p
			c.packages = append(c.packages, p)
		}
	}
	sortPackages(c.packages)
	for _, p := range c.packages {
		for i := range p.channels {
			c.channels = append(c.channels, channelRef{p, &p.channels[i]})
		}
	}
	sort.SliceStable(c.channels, func(i, j int) bool { return c.channels[i].channel.name < c.channels[j].channel.name })
	c.pages = newPages(c, pageMemory)
	return c
}

// acquire adds a user; it returns false if the catalog is closed or about to be.
func (c *catalog) acquire() bool { return c.users.Acquire() }

func (c *catalog) release() {
	if c.users.Release() {
		c.store.Close()
	}
}

// retire closes the store when no call uses it.
func (c *catalog) retire() {
	if c.users.Retire() {
		c.store.Close()
	}
}

// replacing yields a package's entries that replace or skip a bundle, as channel entries in wire form.
func replacing(p *Package, name string, yield func([]byte) bool) bool {
	for i := range p.channels {
		c := &p.channels[i]
		for j := range c.entries {
			e := &c.entries[j]
			if e.replaces == name && !yield(channelEntry(p.name, c.name, p.entryName(e), e.replaces)) {
				return false
			}
			// An entry that replaces the bundle and also skips it counts once.
			if e.replaces != name && slices.Contains(e.skips,
				name) && !yield(channelEntry(p.name, c.name, p.entryName(e), e.replaces)) {
				return false
			}
		}
	}
	return true
}

// replacement returns the entry of a channel that replaces a bundle, or else one that skips it: of several the first by
// name.
func replacement(c *indexChannel, name string) *indexEntry {
	var skipping *indexEntry
	for i := range c.entries {
		e := &c.entries[i]
		if e.replaces == name {
			return e
		}
		if skipping == nil && slices.Contains(e.skips, name) {
			skipping = e
		}
	}
	return skipping
}

// providing yields a package's entries that provide an API: each bundle, and once more for each bundle that it skips.
// With heads only the heads of channels count, and only skips of bundles in the channel.
func providing(p *Package, k gvk, heads bool, yield func(c *indexChannel, e *indexEntry, replaces string) bool) {
	providers := p.providers(k)
	if len(providers) == 0 {
		return
	}
	for i := range p.channels {
		c := &p.channels[i]
		for j := range c.entries {
			e := &c.entries[j]
			if heads && j != c.head {
				continue
			}
			if _, ok := slices.BinarySearch(providers, e.bundle); !ok {
				continue
			}
			if !yield(c, e, e.replaces) {
				return
			}
			for _, s := range e.skips {
				if s == e.replaces || heads && p.entry(c, s) == nil {
					continue
				}
				if !yield(c, e, s) {
					return
				}
			}
		}
	}
}
