package build

import "context"

// ComposeInput are the catalogs that one is composed of.
type ComposeInput struct {
	References []Reference
	// AnyPackages accepts all packages of a reference. Without it a reference must contain only the package that it is
	// named after.
	AnyPackages bool
	// OneCompression repacks layers whose compression differs from the options. Without it they are stacked unchanged.
	OneCompression bool
	// Verify reads all references. Only layers that equal the rebuilt ones are stacked.
	Verify bool
}

// Reference is one of the catalogs of a composition.
type Reference struct {
	// Name is the name of its package.
	Name string
	// Image is the name of its image, for messages and the account.
	Image string
	// Stack, unless nil, are its layers. NoStack is the reason if it is nil.
	Stack   *Stack
	NoStack error
	// Read returns the validated catalog. It is called at most once in a build, if layers cannot be stacked, and may be
	// called concurrently for different references. release, unless nil, is called when the catalog has been packed,
	// before all references are read.
	Read func(context.Context) (_ CatalogInput, release func() error, err error)
}

// Composed reports how a reference was used.
type Composed struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	// Stacked are the packages whose layers were taken by digest, Packed those that were read and packed.
	Stacked []string `json:"stacked"`
	Packed  []string `json:"packed"`
	// Why is the reason why packages were packed.
	Why string `json:"why,omitempty"`
}
