package resolve

import (
	"fmt"
	"strings"
)

// NotFoundError says that a request has no candidate, or candidates of equal rank in more than one catalog.
type NotFoundError struct {
	Package  string
	Version  string // the constraint
	Channels []string
	// Upgrade is set if something is installed; Installed is its version.
	Upgrade   bool
	Installed string
	// Catalogs are those with a candidate, by name; none if there is no candidate.
	Catalogs []string
}

func (e *NotFoundError) Error() string {
	var s strings.Builder
	if e.Upgrade {
		fmt.Fprintf(&s, "error upgrading from currently installed version %q: ", e.Installed)
	}
	if len(e.Catalogs) > 1 {
		fmt.Fprintf(&s, "found bundles for package %q", e.Package)
	} else {
		fmt.Fprintf(&s, "no bundles found for package %q", e.Package)
	}
	if e.Version != "" {
		fmt.Fprintf(&s, " matching version %q", e.Version)
	}
	if len(e.Channels) > 0 {
		fmt.Fprintf(&s, " in channels %v", e.Channels)
	}
	if len(e.Catalogs) > 1 {
		fmt.Fprintf(&s, " in multiple catalogs with the same priority %v", e.Catalogs)
	}
	return s.String()
}

// DependencyError says that the chosen bundle declares a dependency, which OLM v1 does not resolve.
type DependencyError struct {
	Bundle   string
	Property string // the type of its first property that does
}

func (e *DependencyError) Error() string {
	return fmt.Sprintf("validating bundle %q: %s", e.Bundle, e.Reason())
}

// Reason returns the message without the step at which it appears.
func (e *DependencyError) Reason() string {
	return fmt.Sprintf("bundle %q has a dependency declared via property %q which is currently not supported", e.Bundle,
		e.Property)
}

// VersionError says that the chosen bundle has no version.
type VersionError struct {
	Bundle string
	Err    error
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("error getting resolved bundle version for bundle %q: %v", e.Bundle, e.Err)
}

func (e *VersionError) Unwrap() error { return e.Err }
