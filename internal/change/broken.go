package change

import (
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
)

// BrokenError is about a package of a database that is broken, and would be lost if the database were written again. Reason is
// what is wrong with it. Changed is set if the edit changes it: what it had would be lost then even where broken packages
// are left out.
type BrokenError struct {
	Package, Reason string
	Changed         bool
}

func (e *BrokenError) Error() string {
	if e.Changed {
		return fmt.Sprintf("package %q is broken, and cannot be changed before it is removed: %s", e.Package, e.Reason)
	}
	return fmt.Sprintf("package %q is broken, and would not be in the new database; remove it, or have broken packages left out: %s", e.Package, e.Reason)
}

// withContent are the packages of which a catalog has more than the olm.package blob.
func withContent(c *declcfg.Catalog) map[string]bool {
	out := map[string]bool{}
	for b := range c.Blobs() {
		if _, ok := b.(*declcfg.Package); !ok {
			out[b.BlobPackage()] = true
		}
	}
	return out
}
