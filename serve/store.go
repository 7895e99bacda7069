package serve

import (
	"cmp"
	"errors"
	"slices"
)

// Store is a catalog that can be served.
type Store interface {
	// Packages returns the catalog's packages, at most one per name. They are open until Close.
	Packages() []*Package
	// Close releases everything. It is called once, after the last answer.
	Close() error
}

type store struct {
	packages []*Package
	closers  []func() error
}

func (s *store) Packages() []*Package { return s.packages }

func (s *store) Close() error {
	var errs []error
	for _, p := range s.packages {
		errs = append(errs, p.Close())
	}
	for _, c := range s.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

func sortPackages(packages []*Package) {
	slices.SortFunc(packages, func(a, b *Package) int { return cmp.Compare(a.name, b.name) })
}
