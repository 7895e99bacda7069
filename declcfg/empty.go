package declcfg

import "fmt"

// EmptyError reports a catalog without packages where packages are required.
type EmptyError struct {
	// Catalog is the source of the catalog.
	Catalog string
	// Err, unless nil, is the reason why no package is left. It is not unwrapped: its class does not apply here.
	Err error
}

func (e *EmptyError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%q holds no packages: %v", e.Catalog, e.Err)
	}
	return fmt.Sprintf("%q holds no packages", e.Catalog)
}
