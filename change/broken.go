package change

import "fmt"

// BrokenError is about a package of a database that is broken, and would be lost if the database were written again. Reason is
// what is wrong with it.
type BrokenError struct{ Package, Reason string }

func (e *BrokenError) Error() string {
	return fmt.Sprintf("package %q is broken, and would not be in the new database; remove it, or have broken packages left out: %s", e.Package, e.Reason)
}
