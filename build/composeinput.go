package build

import "context"

// ComposeInput are the catalogs that one is composed of.
type ComposeInput struct {
	References []Reference
	// AnyPackages takes whatever packages a reference holds. Without it a reference holds the one that it is named for,
	// and no other.
	AnyPackages bool
	// OneCompression repacks layers whose compression is not that of the options. Without it they are taken as they
	// are.
	OneCompression bool
	// Verify reads all references. Only layers that are what is made of the content here are stacked.
	Verify bool
}

// Reference is one of the catalogs of a composition.
type Reference struct {
	// Name is that of the package that it is to hold.
	Name string
	// Image says where it comes from, for messages and the account.
	Image string
	// Stack, unless nil, are its layers, and NoStack says why it is nil.
	Stack   *Stack
	NoStack error
	// Read gives the catalog, validated. It is called at most once in a build, where layers cannot be stacked; what it
	// returns is closed before that of all references is read. It may be called concurrently for different references.
	Read func(context.Context) (OpenedCatalog, error)
}

// OpenedCatalog is a catalog that has been opened to be packed. Close, unless nil, is called when it has been.
type OpenedCatalog struct {
	CatalogInput
	Close func() error
}

// Composed says what became of a reference.
type Composed struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	// Stacked are the packages whose layers were taken by digest, Packed those that were read and packed.
	Stacked []string `json:"stacked"`
	Packed  []string `json:"packed"`
	// Why says why packages were packed.
	Why string `json:"why,omitempty"`
}
