package declcfg

import "fmt"

// NotFoundError reports that a catalog has no package, channel or other part with a requested name.
type NotFoundError struct {
	// Kind is the kind of the part, such as "package".
	Kind string
	// Name is the requested name.
	Name string
	// Known are the existing names in the order of the catalog.
	Known []string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %q not found", e.Kind, e.Name) }
