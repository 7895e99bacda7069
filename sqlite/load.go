package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

// loadOnce caches the result of loading.
type loadOnce struct {
	mu       sync.Mutex
	done     bool
	packages []*assembled
	stranded []*bundle // in no channel, sorted by name
	err      error
}

// assembled is one package of the catalog; its bundles lack their manifests.
type assembled struct {
	catalog declcfg.Catalog
	rows    []*bundle // of catalog.Bundles
	iconOf  *bundle   // the bundle whose ClusterServiceVersion has the package's icon; nil if there is none
}

// Load reads everything except the manifests of bundles, which it only checks, and computes the catalog. Later calls
// return the same result, unless the first was cancelled. The error joins the problems of all invalid packages, unless
// Options.KeepGoing is set.
func (db *DB) Load(ctx context.Context) error {
	_, err := db.loaded(ctx)
	return db.wrap(err)
}

// Packages returns the number of packages that [DB.Blobs] yields. It loads the database.
func (db *DB) Packages(ctx context.Context) (int, error) {
	packages, err := db.loaded(ctx)
	return len(packages), db.wrap(err)
}

// Skeleton loads the database and returns the catalog without the manifests of bundles: HasObjects reports which
// bundles have some. The catalog is in opm's writing order and shares memory with the database; it must not be
// modified.
func (db *DB) Skeleton(ctx context.Context) (*declcfg.Catalog, error) {
	packages, err := db.loaded(ctx)
	if err != nil {
		return nil, db.wrap(err)
	}
	c := &declcfg.Catalog{}
	for _, p := range packages {
		c.Packages = append(c.Packages, p.catalog.Packages...)
		c.Channels = append(c.Channels, p.catalog.Channels...)
		c.Bundles = append(c.Bundles, p.catalog.Bundles...)
		c.Deprecations = append(c.Deprecations, p.catalog.Deprecations...)
	}
	return c, nil
}

func (db *DB) loaded(ctx context.Context) ([]*assembled, error) {
	db.load.mu.Lock()
	defer db.load.mu.Unlock()
	if !db.load.done {
		limited, cancel := db.deadline(ctx)
		defer cancel()
		packages, err := db.readAll(limited)
		if err = classify(limited, err); ctx.Err() != nil {
			return nil, err
		}
		db.load.packages, db.load.err, db.load.done = packages, err, true
	}
	return db.load.packages, db.load.err
}

func (db *DB) readAll(ctx context.Context) ([]*assembled, error) {
	r := &reader{ctx: ctx, conn: db.base, limits: db.options.Limits, names: map[string]string{}}
	bundles, err := db.readBundles(r)
	if err != nil {
		return nil, err
	}
	g, err := db.readGraph(r, bundles)
	if err != nil {
		return nil, err
	}
	if err := db.source.unchanged(); err != nil {
		return nil, err
	}
	db.derive(g)
	db.load.stranded = nil
	var out []*assembled
	var broken problem.List[error]
	for _, name := range sortedKeys(g.packages) {
		p := g.packages[name]
		a, err := db.assemble(g, p)
		switch {
		case err == nil && a != nil:
			out = append(out, a)
		case err == nil:
		case db.options.KeepGoing:
			db.findings.add(Finding{Kind: Quarantined, Package: name, Reason: err.Error()})
		default:
			broken.AddNew(func() error { return fmt.Errorf("package %s: %w", fault.Quote(name), err) })
		}
	}
	for _, name := range sortedKeys(g.bundles) {
		if b := g.bundles[name]; !b.inSomeChannel {
			db.load.stranded = append(db.load.stranded, b)
			reason := "the bundle is in no channel of any package"
			if b.problem != nil {
				reason += "; " + b.problem.Error()
			}
			db.findings.add(Finding{Kind: Dropped, Bundle: name, Reason: reason})
		}
	}
	return out, broken.Err()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
