package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/render/internal/appregistry"
)

// Options configure an export.
type Options struct {
	// Render configures how the catalog and its bundles are read. Level, KeepGoing and ImageTemplate are ignored.
	Render render.Options
	// Packages are the packages to export; empty means all.
	Packages []string
	// Warn, unless nil, is called for each part of a package that package manifests cannot represent. Calls do not
	// overlap.
	Warn func(pkg, message string)
	// Progress, unless nil, is called for every written bundle. Calls do not overlap.
	Progress func(done, total int, bundle string)
	// Ready, unless nil, is called for each package when its bundles have been fetched, before anything appears in the
	// folder.
	Ready func(pkg string)
}

// Result is the outcome of an export.
type Result struct {
	// Packages are the sorted names of the exported packages, Bundles is their number of bundles.
	Packages []string
	Bundles  int
	// Written are the new parts of the folder.
	Written appregistry.Written
}

// fetches is how many bundles are fetched concurrently; opm fetches ten.
const fetches = 8

// Run exports packages of the catalog that ref names into a folder. Packages that exist in the folder are extended, see
// [appregistry.Writer].
//
// The error joins a *[declcfg.NotFoundError] for each missing package, or the errors of all bundles that could not be
// fetched. After an error the folder is unchanged.
func Run(ctx context.Context, ref, folder string, o Options) (_ *Result, err error) {
	w, err := appregistry.NewWriter(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	c := &collector{ctx: ctx, w: w, wanted: o.Packages}
	if err := c.collect(ref, o.Render); err != nil {
		return nil, err
	}
	e := &exporter{Options: o, collector: c}
	if err := e.fetch(ctx); err != nil {
		return nil, err
	}
	r := &Result{Bundles: len(c.bundles)}
	for _, p := range c.packages {
		m, err := p.manifest()
		if err != nil {
			return nil, err
		}
		e.warnOfLosses(p, m)
		if err := w.Package(m); err != nil {
			return nil, err
		}
		r.Packages = append(r.Packages, p.name)
		if o.Ready != nil {
			o.Ready(p.name)
		}
	}
	r.Written, err = w.Commit(ctx)
	return r, err
}

// exporter fetches the bundles of a catalog after it was read.
type exporter struct {
	Options
	*collector

	mu   sync.Mutex
	done int
}

// fetch fetches and writes concurrently the bundles that have an image.
func (e *exporter) fetch(ctx context.Context) error {
	bound := cmp.Or(max(e.Render.Fetches, 0), fetches)
	o := e.Render
	o.Allow = []render.Kind{render.BundleImage}
	o.ImageTemplate, o.ResolveDigests = nil, false
	if tell := o.Opened; tell != nil {
		o.Opened = func(i render.OpenedImage) {
			e.mu.Lock()
			defer e.mu.Unlock()
			tell(i)
		}
	}
	const enough = 20 // failures after which no more bundles are started
	errs := guard.TryEach(ctx, bound, enough, e.bundles, func(ctx context.Context, i int, _ bundleOf) error {
		b := &e.bundles[i]
		if b.image != "" {
			if err := e.one(ctx, b, o); err != nil {
				return err
			}
		}
		e.written(b)
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// written counts a written bundle.
func (e *exporter) written(b *bundleOf) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done++
	if e.Progress != nil {
		e.Progress(e.done, len(e.bundles), b.name)
	}
}

func (e *exporter) warn(pkg, message string) {
	if e.Warn != nil {
		e.Warn(pkg, message)
	}
}

// warn stores a warning about a bundle; it is reported in the order of bundles.
func (b *bundleOf) warn(format string, args ...any) {
	b.warnings = append(b.warnings, fmt.Sprintf(format, args...))
}

// one fetches a bundle and writes its manifests.
func (e *exporter) one(ctx context.Context, b *bundleOf, o render.Options) error {
	return o.BundleFiles(ctx, b.image, func(f render.FetchedBundle, files fs.FS) error {
		got := f.Bundle
		if got.CSV == nil {
			return fmt.Errorf("%w: there is no ClusterServiceVersion in it", appregistry.ErrInvalid)
		}
		if got.CSV.Name != b.name {
			b.warn("bundle %s: its image %s holds a bundle called %s", fault.Quote(b.name), b.image,
				fault.Quote(got.CSV.Name))
		}
		for _, lost := range []struct {
			what string
			n    int
		}{{"dependencies", len(got.Dependencies)}, {"properties", len(got.Properties)}} {
			if lost.n > 0 {
				b.warn("bundle %s: the %d %s in its metadata have no place in package manifests", fault.Quote(b.name),
					lost.n, lost.what)
			}
		}
		b.wish = &appregistry.Wish{Replaces: got.CSV.Replaces, Skips: got.CSV.Skips, SkipRange: got.CSV.SkipRange}
		sub, err := fs.Sub(files, got.ManifestsDir)
		if err != nil {
			return err
		}
		return e.w.Bundle(ctx, b.pkg, b.dir, sub)
	})
}

// warnOfLosses warns about everything in a package that package manifests cannot represent. That includes an upgrade
// graph which differs from the one that the ClusterServiceVersions declare: package manifests contain no other graph.
func (e *exporter) warnOfLosses(p *packageOf, m appregistry.Manifest) {
	wishes := map[string]appregistry.Wish{}
	for _, b := range e.bundles {
		if b.pkg != p.name {
			continue
		}
		for _, message := range b.warnings {
			e.warn(p.name, message)
		}
		if b.wish != nil {
			wishes[b.name] = *b.wish
		}
	}
	channels, problems := m.Graph(wishes)
	for _, problem := range problems {
		e.warn(p.name, fmt.Sprintf("package %s cannot be read back: %s", fault.Quote(p.name), problem.Text))
	}
	there := map[string]declcfg.Channel{}
	for _, c := range channels {
		there[c.Name] = c
	}
	for _, c := range p.channels {
		got, ok := there[c.Name]
		if !ok {
			continue // a problem explains it
		}
		if n, first := differences(c.Entries, got.Entries); n > 0 {
			e.warn(p.name,
				fmt.Sprintf("channel %s of package %s: package manifests have the edges that ClusterServiceVersions "+
					"name; in the catalog %d bundles have others, the first is %s",
					fault.Quote(c.Name), fault.Quote(p.name), n, fault.Quote(first)))
		}
	}
}

// differences counts the bundles with other edges in one channel than in the other and names the first.
func differences(a, b []declcfg.ChannelEntry) (n int, first string) {
	other := map[string]declcfg.ChannelEntry{}
	for _, e := range b {
		other[e.Name] = e
	}
	for _, e := range a {
		o, ok := other[e.Name]
		delete(other, e.Name)
		if ok && e.Replaces == o.Replaces && e.SkipRange == o.SkipRange && slices.Equal(sorted(e.Skips),
			sorted(o.Skips)) {
			continue
		}
		if n++; first == "" || e.Name < first {
			first = e.Name
		}
	}
	for name := range other {
		if n++; first == "" || name < first {
			first = name
		}
	}
	return n, first
}

func sorted(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
