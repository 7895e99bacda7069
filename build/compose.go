package build

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/redact"
)

// Compose builds the catalog image of everything that the references hold. Layers of images that were built by this
// package are taken over by digest, without being fetched: [Image] opens them when a destination wants their bytes.
// Other catalogs are read and packed. If every reference holds one package, and there are layers enough, the image is
// the one that [Catalog] makes of the union of the catalogs with the same options.
//
// Where there are more packages than layers, those are packed together that [Catalog] would put together, and only
// these are read. The caller must close the image, and keep o.Dir and the images of the stacks until it has been
// copied.
func Compose(ctx context.Context, in ComposeInput, o Options) (*Image, error) {
	given := o
	c, err := newComposer(in, &o)
	if err != nil {
		return nil, err
	}
	img, err := serveImage(ctx, &o, "", func(below int) ([]part, error) { return c.parts(ctx, below) })
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	// Whatever may still be written of the image is there as long as it is.
	img.closers = append(img.closers, c)
	c.unproved(img)
	img.Composed = c.account()
	img.rebuilds(given, func(ctx context.Context, o Options) (*Image, error) { return Compose(ctx, in, o) })
	return img, nil
}

// PlanCompose says what [Compose] would do, and which layers of packages the image would have: their sizes as far as
// they are known without writing them.
func PlanCompose(ctx context.Context, in ComposeInput, o Options) (_ []Composed, _ []Layer, err error) {
	c, err := newComposer(in, &o)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var parts []part
	_, err = serveImage(ctx, &o, "", func(below int) ([]part, error) {
		if parts, err = c.parts(ctx, below); err != nil {
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

// errPlanned ends a build when its plan is there.
var errPlanned = errors.New("planned")

// composer composes a catalog.
type composer struct {
	in   ComposeInput
	o    *Options
	s    *blobSpool
	at   *places
	refs []*composed
}

// composed is a reference and what has been found out about it.
type composed struct {
	Reference
	why   error
	stack []Layer            // by digest; nil if nothing can be stacked
	told  []string           // the packages that its layers are said to hold; nil if nothing can be stacked
	read  map[string]content // by package; nil until it has been read
	proof map[string]*Layer  // layers that are stacked if they are what is made of the content
	// whence the packages of the image come
	stacked, packed []string
}

func newComposer(in ComposeInput, o *Options) (*composer, error) {
	o.purpose = catalogPurpose()
	if err := o.normalize(); err != nil {
		return nil, err
	}
	if len(in.References) == 0 {
		return nil, errors.New("there is nothing to compose a catalog of")
	}
	s := newSpool(o.Dir)
	c := &composer{in: in, o: o, s: s, at: newPlaces()}
	// A cache of all packages is made of the files of all packages.
	c.in.Verify = in.Verify || len(o.Extra) > 0
	for _, r := range in.References {
		c.refs = append(c.refs, &composed{Reference: r})
	}
	return c, nil
}

// Close removes what was read.
func (c *composer) Close() error { return c.s.Close() }

// parts are the layers of the catalog.
func (c *composer) parts(ctx context.Context, below int) ([]part, error) {
	var toRead []*composed
	for _, r := range c.refs {
		r.why = r.NoStack
		if r.Stack != nil {
			r.why = r.Stack.fits(c.o, c.in.OneCompression)
		}
		if r.Stack != nil && r.why == nil {
			r.stack = r.Stack.Layers
			for _, l := range r.stack {
				r.told = append(r.told, l.Packages...)
			}
			slices.Sort(r.told)
		}
		if r.stack == nil || c.in.Verify {
			toRead = append(toRead, r)
		}
	}
	// What can be known without reading is reported first.
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
	for _, x := range c.o.Extra {
		if x.Top != nil {
			below++
		}
	}
	groups, err := c.divide(ctx, below)
	if err != nil {
		return nil, err
	}
	// Before any of it is parsed, so that what is parsed is held to it.
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
	return append(parts, topParts(c.o, all)...), nil
}

// prove gives up what was to be stacked for what was read.
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

// packages are what a reference holds, as far as it is known.
func (r *composed) packages() []string {
	if r.read == nil {
		return r.told
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

// divide says what goes into which layer. What is to share a layer with something else is read.
func (c *composer) divide(ctx context.Context, below int) ([][]content, error) {
	apart := false // every package by itself, as they are divided where there are not layers enough
	for {
		all := c.contents(apart)
		budget := contentBudget(c.o.MaxLayers, below)
		if !apart && len(all) > budget {
			apart = true
			all = c.contents(apart)
		}
		groups, err := group(all, budget, nil)
		if err != nil {
			return nil, err
		}
		var shared []*composed
		for _, g := range groups {
			for _, p := range g {
				// A layer that holds several packages is taken as a whole or not at all.
				if p.stacked != nil && (len(g) > 1 || apart && len(p.stacked.Packages) > 1) {
					shared = append(shared, p.of)
				}
			}
		}
		if len(shared) == 0 {
			c.settle(groups)
			return groups, nil
		}
		if err := c.unstack(ctx, shared, groups); err != nil {
			return nil, err
		}
	}
}

// contents are what there is to divide, sorted by the first package of each. Packages of a layer that holds several are
// one content, or each one of its own.
func (c *composer) contents(apart bool) []content {
	var all []content
	var free content // blobs of no package, of all references
	for _, r := range c.refs {
		for i := range r.stack {
			l := &r.stack[i]
			if !apart {
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
		slices.SortFunc(free.entries, byPath)
		all = append(all, free)
	}
	slices.SortFunc(all, func(a, b content) int { return strings.Compare(a.pkg, b.pkg) })
	return all
}

// isStacked reports whether a package comes from a layer that is taken as it is.
func (r *composed) isStacked(pkg string) bool {
	return slices.ContainsFunc(r.stack, func(l Layer) bool { return slices.Contains(l.Packages, pkg) })
}

// unstack reads references of which layers cannot be taken as they are, and gives these layers up.
func (c *composer) unstack(ctx context.Context, of []*composed, groups [][]content) error {
	var toRead []*composed
	for _, r := range of {
		if r.read == nil && !slices.Contains(toRead, r) {
			toRead = append(toRead, r)
		}
	}
	slices.SortFunc(toRead, func(a, b *composed) int { return cmp.Compare(slices.Index(c.refs, a), slices.Index(c.refs, b)) })
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
		var kept []Layer
		for i := range r.stack {
			if !given[&r.stack[i]] {
				kept = append(kept, r.stack[i])
			}
		}
		if len(kept) < len(r.stack) && r.why == nil {
			r.why = errors.New("there are more packages than layers")
		}
		r.stack = kept
	}
	return nil
}

// settle notes what became of the packages.
func (c *composer) settle(groups [][]content) {
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

// unproved corrects the account where layers were to be stacked if they are what is made of their content.
func (c *composer) unproved(img *Image) {
	lent := map[string]bool{}
	for _, l := range img.Layers {
		if l.From != "" {
			for _, p := range l.Packages {
				lent[p] = true
			}
		}
	}
	for _, r := range c.refs {
		var packed []string
		for _, p := range r.packed {
			if lent[p] {
				r.stacked = append(r.stacked, p)
				continue
			}
			packed = append(packed, p)
			if r.proof[p] != nil && r.why == nil {
				r.why = errors.New("its layer is not the one that is made of its content here")
			}
		}
		r.packed = packed
	}
}

// account is what became of the references.
func (c *composer) account() []Composed {
	out := make([]Composed, len(c.refs))
	for i, r := range c.refs {
		out[i] = Composed{Name: r.Name, Image: redact.Text(r.Image), Stacked: sorted(r.stacked), Packed: sorted(r.packed)}
		if r.why != nil && len(r.packed) > 0 {
			out[i].Why = r.why.Error()
		}
	}
	return out
}

// sorted is never nil: it becomes a list in JSON.
func sorted(names []string) []string {
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return append([]string{}, slices.Sorted(maps.Keys(set))...)
}
