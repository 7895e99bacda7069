package declcfg

import "fmt"

// EmptyError says that a catalog holds no packages where one with packages is needed.
type EmptyError struct {
	// Catalog is what the catalog was read from.
	Catalog string
	// Err, unless nil, is why no package is left. It is not unwrapped: what it says of the others is not so here.
	Err error
}

func (e *EmptyError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%q holds no packages: %v", e.Catalog, e.Err)
	}
	return fmt.Sprintf("%q holds no packages", e.Catalog)
}
