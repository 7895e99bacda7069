package change

import (
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
)

// BrokenError reports an invalid package of a database, which rewriting the database would lose. Reason explains the
// defect. Changed is set if the edit changes the package: then [Options.KeepGoing] does not help.
type BrokenError struct {
	Package, Reason string
	Changed         bool
}

func (e *BrokenError) Error() string {
	if e.Changed {
		return fmt.Sprintf("package %q is broken, and cannot be changed before it is removed: %s", e.Package, e.Reason)
	}
	return fmt.Sprintf(
		"package %q is broken, and would not be in the new database; remove it, or have broken packages left out: %s",
		e.Package, e.Reason)
}

// Hint is what to do about a package that cannot be changed.
func (e *BrokenError) Hint() string {
	if e.Changed {
		return "remove the invalid package with \"registry rm\" or \"catalog rm\""
	}
	return ""
}

// withContent returns the packages of which a catalog has more than the olm.package blob.
func withContent(c *declcfg.Catalog) map[string]bool {
	out := map[string]bool{}
	for b := range c.Blobs() {
		if _, ok := b.(*declcfg.Package); !ok {
			out[b.BlobPackage()] = true
		}
	}
	return out
}
