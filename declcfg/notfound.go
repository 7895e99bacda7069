package declcfg

import "fmt"

// NotFoundError says that a catalog has no package, channel or other part of the name that somebody asked for.
type NotFoundError struct {
	// Kind is what was looked for, such as "package".
	Kind string
	// Name is the name that was asked for.
	Name string
	// Known are the names that there are, in the order of the catalog.
	Known []string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %q not found", e.Kind, e.Name) }
