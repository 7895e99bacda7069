package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/layers"
)

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

// Compose builds the catalog image of all references. Layers of images built by this package are reused by digest
// without fetching: [Image] opens them when a destination needs their bytes. Other catalogs are read and packed. If
// every reference has one package and there are enough layers, the image is the one that [Catalog] builds from the
// union of the catalogs with the same options.
//
// If there are more packages than layers, packages are grouped as by [Catalog], and only grouped packages are read. The
// caller must close the image, and keep o.Dir and the images of the stacks until it has been copied.
func Compose(ctx context.Context, in ComposeInput, o Options) (*Image, error) {
	given := o
	c, err := newComposer(in, &o)
	if err != nil {
		return nil, err
	}
	img, err := serveImage(ctx, &o, "", func(below int) ([]part, error) { return c.planParts(ctx, below) })
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	// The spool stays as long as the image: its layers may still be read from it.
	img.closers = append(img.closers, c)
	c.unproved(img)
	img.Composed = c.account()
	img.rebuilds(given, func(ctx context.Context, o Options) (*Image, error) { return Compose(ctx, in, o) })
	return img, nil
}

// context returns what [Compose] would do, and the package layers of the image with their sizes as far as known
// without writing them.
func (in ComposeInput) Plan(ctx context.Context, o Options) (_ []Composed, _ []Layer, err error) {
	c, err := newComposer(in, &o)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var parts []part
	_, err = serveImage(ctx, &o, "", func(below int) ([]part, error) {
		if parts, err = c.planParts(ctx, below); err != nil {
			return nil, err
		}
		return nil, errPlanned
	})
	if !errors.Is(err, errPlanned) {
		return nil, nil, err
	}
	var ls []Layer
	for _, p := range parts {
		if p.stacked != nil {
			ls = append(ls, *p.stacked)
			continue
		}
		ls = append(ls, Layer{Kind: p.kind, Packages: p.packages, Content: p.layer.Size()})
	}
	return c.account(), ls, nil
}

// errPlanned ends a build after planning.
var errPlanned = errors.New("planned")

// composer composes a catalog.
type composer struct {
	in   ComposeInput
	o    *Options
	s    *blobSpool
	at   *places
	refs []*composed
}

// composed is a reference and its state.
type composed struct {
	Reference
	why       error
	stack     []Layer            // by digest; nil if nothing can be stacked
	annotated []string           // the packages of its layer annotations; nil if nothing can be stacked
	read      map[string]content // by package; nil until it has been read
	proof     map[string]*Layer  // layers that are stacked if they equal the rebuilt ones
	// the origin of the packages of the image
	stacked, packed []string
}

func newComposer(in ComposeInput, o *Options) (*composer, error) {
	o.purpose = catalogPurpose()
	if err := o.normalize(); err != nil {
		return nil, err
	}
	if len(in.References) == 0 {
		return nil, errors.New("no references to compose")
	}
	s := newSpool(o.Dir)
	c := &composer{in: in, o: o, s: s, at: newPlaces()}
	// A cache of the whole catalog needs the files of all packages.
	c.in.Verify = in.Verify || len(o.caches.Extra) > 0
	for _, r := range in.References {
		c.refs = append(c.refs, &composed{Reference: r})
	}
	return c, nil
}

// Close removes what was read.
func (c *composer) Close() error { return c.s.Close() }

// planParts returns the layers of the catalog.
func (c *composer) planParts(ctx context.Context, below int) ([]part, error) {
	var toRead []*composed
	for _, r := range c.refs {
		r.why = r.NoStack
		if r.Stack != nil {
			r.why = r.Stack.fits(c.o, c.in.OneCompression)
		}
		if r.Stack != nil && r.why == nil {
			r.stack = r.Stack.Layers
			for _, l := range r.stack {
				r.annotated = append(r.annotated, l.Packages...)
			}
			slices.Sort(r.annotated)
		}
		if r.stack == nil || c.in.Verify {
			toRead = append(toRead, r)
		}
	}
	// Report errors that need no reading first.
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.readAll(ctx, toRead); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.in.Verify {
		for _, r := range c.refs {
			r.prove()
		}
	}
	groups, err := c.divide(ctx, below+c.o.caches.WholeLayers())
	if err != nil {
		return nil, err
	}
	// Hash before parsing, so that the parsed bytes are compared with the digests.
	for _, g := range groups {
		if err := hashContents(ctx, c.o, g); err != nil {
			return nil, err
		}
	}
	var parts []part
	for _, g := range groups {
		p := packagesPart(c.o, g)
		if len(g) == 1 {
			p.proof = g[0].proof
		}
		parts = append(parts, p)
	}
	all := slices.Concat(groups...)
	slices.SortFunc(all, func(a, b content) int { return strings.Compare(a.pkg, b.pkg) })
	return append(parts, wholeParts(c.o, all)...), nil
}

// prove replaces stacked layers by the content that was read, and keeps them for comparison.
func (r *composed) prove() {
	r.proof = map[string]*Layer{}
	for i, l := range r.stack {
		if len(l.Packages) == 1 {
			r.proof[l.Packages[0]] = &r.stack[i]
		} else if r.why == nil {
			r.why = errors.New("a layer holds several packages")
		}
	}
	r.stack = nil
}

// packages returns the packages of a reference as far as they are known.
func (r *composed) packages() []string {
	if r.read == nil {
		return r.annotated
	}
	var names []string
	for name := range r.read {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// divide assigns packages to layers. References with packages that share a layer are read.
func (c *composer) divide(ctx context.Context, below int) ([][]content, error) {
	perPackage := false // one content per package; needed if there are too few layers
	for {
		all := c.contents(perPackage)
		budget := contentBudget(c.o.MaxLayers, below)
		if !perPackage && len(all) > budget {
			perPackage = true
			all = c.contents(perPackage)
		}
		groups, err := group(all, budget, nil)
		if err != nil {
			return nil, err
		}
		var shared []*composed
		for _, g := range groups {
			for _, p := range g {
				// A layer with several packages is stacked completely or not at all.
				if p.stacked != nil && (len(g) > 1 || perPackage && len(p.stacked.Packages) > 1) {
					shared = append(shared, p.of)
				}
			}
		}
		if len(shared) == 0 {
			c.recordUse(groups)
			return groups, nil
		}
		if err := c.unstack(ctx, shared, groups); err != nil {
			return nil, err
		}
	}
}

// contents returns the contents to divide, sorted by the first package of each. A stacked layer with several packages
// is one content, or with perPackage one per package.
func (c *composer) contents(perPackage bool) []content {
	var all []content
	var free content // blobs of no package, of all references
	for _, r := range c.refs {
		for i := range r.stack {
			l := &r.stack[i]
			if !perPackage {
				all = append(all, content{pkg: l.Packages[0], stacked: l, of: r})
				continue
			}
			for _, p := range l.Packages {
				all = append(all, content{pkg: p, stacked: l, of: r})
			}
		}
		for name, part := range r.read {
			switch {
			case name == "":
				free.entries = append(free.entries, part.entries...)
			case !r.isStacked(name):
				part.of, part.proof = r, r.proof[name]
				all = append(all, part)
			}
		}
	}
	if len(free.entries) > 0 {
		slices.SortFunc(free.entries, cataloglayer.ByPath)
		all = append(all, free)
	}
	slices.SortFunc(all, func(a, b content) int { return strings.Compare(a.pkg, b.pkg) })
	return all
}

// isStacked reports whether a package comes from a stacked layer.
func (r *composed) isStacked(pkg string) bool {
	return slices.ContainsFunc(r.stack, func(l Layer) bool { return slices.Contains(l.Packages, pkg) })
}

// unstack reads references with layers that cannot be stacked, and drops these layers.
func (c *composer) unstack(ctx context.Context, of []*composed, groups [][]content) error {
	var toRead []*composed
	for _, r := range of {
		if r.read == nil && !slices.Contains(toRead, r) {
			toRead = append(toRead, r)
		}
	}
	slices.SortFunc(toRead,
		func(a, b *composed) int { return cmp.Compare(slices.Index(c.refs, a), slices.Index(c.refs, b)) })
	if err := c.readAll(ctx, toRead); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	given := map[*Layer]bool{}
	for _, g := range groups {
		for _, p := range g {
			if p.stacked != nil && (len(g) > 1 || len(p.stacked.Packages) > 1) {
				given[p.stacked] = true
			}
		}
	}
	for _, r := range of {
		var remaining []Layer
		for i := range r.stack {
			if !given[&r.stack[i]] {
				remaining = append(remaining, r.stack[i])
			}
		}
		if len(remaining) < len(r.stack) && r.why == nil {
			r.why = errors.New("there are more packages than layers")
		}
		r.stack = remaining
	}
	return nil
}

// recordUse records which packages were stacked and packed.
func (c *composer) recordUse(groups [][]content) {
	for _, g := range groups {
		for _, p := range g {
			switch {
			case p.of == nil:
			case p.stacked != nil:
				p.of.stacked = append(p.of.stacked, p.stacked.Packages...)
			default:
				p.of.packed = append(p.of.packed, p.pkg)
			}
		}
	}
}

// unproved corrects the account after layers were compared with the rebuilt ones.
func (c *composer) unproved(img *Image) {
	reused := map[string]bool{}
	for _, l := range img.Layers {
		if l.From != "" {
			for _, p := range l.Packages {
				reused[p] = true
			}
		}
	}
	for _, r := range c.refs {
		var packed []string
		for _, p := range r.packed {
			if reused[p] {
				r.stacked = append(r.stacked, p)
				continue
			}
			packed = append(packed, p)
			if r.proof[p] != nil && r.why == nil {
				r.why = errors.New("its layer differs from the rebuilt one")
			}
		}
		r.packed = packed
	}
}

// account reports how the references were used.
func (c *composer) account() []Composed {
	out := make([]Composed, len(c.refs))
	for i, r := range c.refs {
		out[i] = Composed{Name: r.Name, Image: redact.Text(r.Image), Stacked: sorted(r.stacked),
			Packed: sorted(r.packed)}
		if r.why != nil && len(r.packed) > 0 {
			out[i].Why = r.why.Error()
		}
	}
	return out
}

// sorted never returns nil: the result becomes a list in JSON.
func sorted(names []string) []string {
	return append([]string{}, slices.Compact(slices.Sorted(slices.Values(names)))...)
}

// check refuses references without the package that they are named after, and packages of more than one reference.
func (c *composer) check() error {
	var errs []error
	wrong := func(r *composed, format string, args ...any) {
		errs = append(errs, &ReferenceError{r.Name, r.Image, packagesError{fmt.Sprintf(format, args...)}})
	}
	holder := map[string]*composed{}
	for _, r := range c.refs {
		if r.annotated == nil && r.read == nil {
			continue // not known yet
		}
		names := r.packages()
		if r.annotated != nil && !slices.Equal(r.annotated, names) {
			wrong(r, "its layers are annotated with %s, but it contains %s", listSome(r.annotated), listSome(names))
			continue
		}
		switch has := slices.Contains(names, r.Name); {
		case c.in.AnyPackages:
		case len(names) == 0:
			wrong(r, "it contains no package")
		case !has:
			wrong(r, "it does not contain the package that it is named after, but %s", listSome(names))
		case len(names) > 1:
			wrong(r, "it contains packages other than the one it is named after: %s",
				listSome(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == r.Name })))
		}
		for _, name := range names {
			if first := holder[name]; first != nil {
				wrong(r, "package %q is already in reference %.200q (%.300s)", name, first.Name,
					redact.Text(first.Image))
				continue
			}
			holder[name] = r
		}
	}
	return errors.Join(errs...)
}

// packagesError is an error of the class [ErrPackages].
type packagesError struct{ text string }

func (e packagesError) Error() string { return e.text }
func (e packagesError) Unwrap() error { return ErrPackages }

// listSome lists names for a message.
func listSome(names []string) string {
	const most = 10
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, fmt.Sprintf("%.100q", n))
	}
	if len(names) > most {
		out = append(out, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(out, ", ")
}

// readAhead is the number of references opened concurrently. Their content is spooled in order.
const readAhead = 4

// readAll reads references into the spool. The problems of all are reported.
func (c *composer) readAll(ctx context.Context, refs []*composed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type opened struct {
		catalog CatalogInput
		release func() error
		err     error
	}
	answers := make([]chan opened, len(refs))
	for i := range answers {
		answers[i] = make(chan opened, 1)
	}
	slots := make(chan struct{}, readAhead)
	var all sync.WaitGroup
	all.Go(func() {
		for i, r := range refs {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				answers[i] <- opened{err: context.Cause(ctx)}
				continue
			}
			all.Go(func() {
				var a opened
				a.err = guard.Call(func() (err error) {
					a.catalog, a.release, err = r.Read(ctx)
					return err
				})
				answers[i] <- a
			})
		}
	})
	var errs []error
	for i, r := range refs {
		a := <-answers[i]
		err := a.err
		if err == nil && len(errs) == 0 {
			r.read, err = c.spoolOf(ctx, a.catalog)
		}
		if a.err == nil && a.release != nil {
			err = errors.Join(err, a.release())
		}
		if ctx.Err() != nil { // report the cancellation once
			err = nil
		}
		if err != nil {
			errs = append(errs, &ReferenceError{r.Name, r.Image, err})
		}
		select {
		case <-slots:
		default:
		}
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// spoolOf spools the content of a catalog by package.
func (c *composer) spoolOf(ctx context.Context, in CatalogInput) (map[string]content, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	p := planner{fsys: in.FS, s: c.s, at: c.at, private: true, changed: map[string]bool{},
		entries: map[string][]layers.Entry{}}
	if in.Changed != nil {
		return nil, errors.New("a catalog with changed packages cannot be part of a composition")
	}
	if err := p.files(ctx, in.Files); err != nil {
		return nil, err
	}
	if in.Blobs != nil {
		if err := p.blobs(ctx, in.Blobs, formats(nil)); err != nil {
			return nil, err
		}
	}
	all, err := sortedContents(p.entries)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPackages, err)
	}
	parts := make(map[string]content, len(all))
	for _, part := range all {
		parts[part.pkg] = part
	}
	return parts, nil
}
