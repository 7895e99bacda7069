package edit

import (
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// RemoveOptions configure [Remove].
type RemoveOptions struct {
	// Permissive skips missing packages and reports them in Account.Problems.
	Permissive bool
}

// Remove removes packages from a catalog with all their content.
func Remove(c *declcfg.Catalog, packages []string, o RemoveOptions) (*declcfg.Catalog, *Account, error) {
	there := packagesOf(c)
	names := map[string]bool{}
	var problems []Problem
	for _, name := range packages {
		switch {
		case names[name]:
		case !there[name] || name == "":
			problems = append(problems, Problem{Package: name, Kind: ErrNotFound,
				Message: fmt.Sprintf("error removing operator package %s: no package found for packagename %s", name,
					name)})
		default:
			names[name] = true
		}
	}
	if len(problems) > 0 && !o.Permissive {
		return nil, nil, ErrorOf(problems)
	}
	out, account := without(c, names)
	account.Problems = problems
	return out, account, nil
}

// Prune removes all packages except the named ones. Blobs of no package stay. A missing name is not an error:
// Account.Notes reports it.
func Prune(c *declcfg.Catalog, keep []string) (*declcfg.Catalog, *Account, error) {
	names := packagesOf(c)
	var notes []Problem
	for _, name := range keep {
		if _, ok := names[name]; !ok {
			notes = append(notes, Problem{Package: name, Kind: ErrNotFound,
				Message: fmt.Sprintf("package %q, which is to be kept, is not in the catalog", name)})
			continue
		}
		names[name] = false
	}
	gone := map[string]bool{}
	for name, remove := range names {
		if remove {
			gone[name] = true
		}
	}
	out, account := without(c, gone)
	account.Notes = notes
	return out, account, nil
}

// PruneStranded removes the bundles that are in no channel. File-based catalogs with such bundles are invalid;
// databases have them after a failed or pruning add.
func PruneStranded(c *declcfg.Catalog) (*declcfg.Catalog, *Account, error) {
	used := map[Name]bool{}
	for i := range c.Channels {
		for _, e := range c.Channels[i].Entries {
			used[Name{c.Channels[i].Package, e.Name}] = true
		}
	}
	account := &Account{Origins: Origins{}}
	out := *c
	out.Bundles = nil
	gone := map[Name]bool{}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		if used[Name{b.Package, b.Name}] {
			out.Bundles = append(out.Bundles, *b)
			continue
		}
		gone[Name{b.Package, b.Name}] = true
		account.Changes = append(account.Changes,
			Change{Action: Removed, Kind: KindBundle, Package: b.Package, Bundle: b.Name, From: b.Image,
				Why: "it is in no channel"})
	}
	out.Deprecations = nil
	for _, d := range c.Deprecations {
		p := &part{deprecations: []declcfg.Deprecations{d}}
		p.undeprecate(func(r declcfg.Reference) bool {
			return r.Schema == declcfg.SchemaBundle && gone[Name{d.Package, r.Name}]
		})
		out.Deprecations = append(out.Deprecations, p.deprecations...)
	}
	account.finish()
	return &out, account, nil
}

// packagesOf returns the packages that any blob of the catalog belongs to.
func packagesOf(c *declcfg.Catalog) map[string]bool {
	names := map[string]bool{}
	for b := range c.Blobs() {
		names[b.BlobPackage()] = true
	}
	delete(names, "")
	return names
}

// without removes whole packages from a catalog.
func without(c *declcfg.Catalog, names map[string]bool) (*declcfg.Catalog, *Account) {
	account := &Account{Origins: Origins{}}
	removed := account.remove(c, names)
	gone := map[string]*part{}
	for name := range names {
		gone[name] = nil
		if !removed[name] { // an invalid package may have nothing but its name
			account.Changes = append(account.Changes, Change{Action: Removed, Kind: KindPackage, Package: name})
		}
	}
	account.finish()
	return join(c, gone), account
}

// removeParts is the number of portions in which removed packages are converted for the account, so that not all of
// them are in memory in that form.
const removeParts = 16

// remove adds the removal of whole packages to the account. It returns those that are worth reporting.
func (a *Account) remove(c *declcfg.Catalog, names map[string]bool) map[string]bool {
	var gone []string
	for name, is := range names {
		if is {
			gone = append(gone, name)
		}
	}
	a.Changes = slices.Grow(a.Changes, changesOf(c, names))
	told := map[string]bool{}
	for some := range slices.Chunk(gone, max(1, (len(gone)+removeParts-1)/removeParts)) {
		these := map[string]bool{}
		for _, name := range some {
			these[name] = true
		}
		before, _ := split(c, these)
		for name, p := range before {
			n := len(a.Changes)
			a.compare(p, nil, nil)
			told[name] = len(a.Changes) > n
		}
	}
	return told
}

// changesOf returns the maximum number of changes in an account if packages are removed.
func changesOf(c *declcfg.Catalog, names map[string]bool) int {
	n := 0
	for i := range c.Packages {
		if names[c.Packages[i].Name] {
			n += 3 // the package, its default channel, its icon
		}
	}
	for i := range c.Channels {
		if !names[c.Channels[i].Package] {
			continue
		}
		n += 2 // the channel and its head
		for _, e := range c.Channels[i].Entries {
			n += 3 + len(e.Skips) // the entry, its replaces, its skipRange
		}
	}
	for i := range c.Bundles {
		if names[c.Bundles[i].Package] {
			n++
		}
	}
	for i := range c.Deprecations {
		if names[c.Deprecations[i].Package] {
			n += len(c.Deprecations[i].Entries)
		}
	}
	return n
}
