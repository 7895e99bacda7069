package edit

import (
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
)

// RemoveOptions say how packages are removed.
type RemoveOptions struct {
	// Permissive passes over packages that the catalog does not have, and tells of them in Account.Problems.
	Permissive bool
}

// Remove takes packages out of a catalog, with everything that belongs to them.
func Remove(c *declcfg.Catalog, packages []string, o RemoveOptions) (*declcfg.Catalog, *Account, error) {
	there := packagesOf(c)
	names := map[string]bool{}
	var problems []Problem
	for _, name := range packages {
		switch {
		case names[name]:
		case !there[name] || name == "":
			problems = append(problems, Problem{Package: name, Kind: ErrNotFound,
				Message: fmt.Sprintf("error removing operator package %s: no package found for packagename %s", name, name)})
		default:
			names[name] = true
		}
	}
	if len(problems) > 0 && !o.Permissive {
		return nil, nil, asError(problems)
	}
	out, account := without(c, names)
	account.Problems = problems
	return out, account, nil
}

// Prune takes all packages out of a catalog but those that are named. Blobs that belong to no package stay. A name that
// the catalog does not have is no error, and told in Account.Notes.
func Prune(c *declcfg.Catalog, keep []string) (*declcfg.Catalog, *Account, error) {
	names := packagesOf(c)
	var notes []Problem
	for _, name := range keep {
		if _, ok := names[name]; !ok {
			notes = append(notes, Problem{Package: name, Kind: ErrNotFound, Message: fmt.Sprintf("package %q, which is to be kept, is not in the catalog", name)})
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

// PruneStranded takes the bundles out of a catalog that are in no channel. File-based catalogs with such bundles are
// invalid; databases have them after a failed or pruning add.
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
		account.Changes = append(account.Changes, Change{Action: Removed, Kind: KindBundle, Package: b.Package, Bundle: b.Name, From: b.Image, Why: "it is in no channel"})
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

// packagesOf are the packages that any blob of the catalog belongs to.
func packagesOf(c *declcfg.Catalog) map[string]bool {
	names := map[string]bool{}
	for i := range c.Packages {
		names[c.Packages[i].Name] = true
	}
	for i := range c.Channels {
		names[c.Channels[i].Package] = true
	}
	for i := range c.Bundles {
		names[c.Bundles[i].Package] = true
	}
	for i := range c.Deprecations {
		names[c.Deprecations[i].Package] = true
	}
	for i := range c.Others {
		names[c.Others[i].Package] = true
	}
	delete(names, "")
	return names
}

// without takes whole packages out of a catalog.
func without(c *declcfg.Catalog, names map[string]bool) (*declcfg.Catalog, *Account) {
	account := &Account{Origins: Origins{}}
	before, _ := split(c, names)
	gone := map[string]*part{}
	for name := range names {
		gone[name] = nil
		told := len(account.Changes)
		if p := before[name]; p != nil {
			account.compare(p, nil, nil)
		}
		if len(account.Changes) == told { // a broken package may have nothing but its name
			account.Changes = append(account.Changes, Change{Action: Removed, Kind: KindPackage, Package: name})
		}
	}
	account.finish()
	return join(c, gone), account
}
