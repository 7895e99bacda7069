package change

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/problem"
)

// plan is an edit that has been applied to a catalog and is not yet written.
type plan struct {
	reader  reader
	after   map[string]*declcfg.Catalog // by package; bundles may be reduced
	names   []string                    // of the packages after the edit, sorted
	changed map[string]bool             // packages; the empty name stands for blobs without a package
	result  *Result
}

// apply calls the edit's function.
func apply(ctx context.Context, r reader, e Edit, o Options) (*plan, error) {
	state, b, err := newState(ctx, r, e)
	if err != nil {
		return nil, err
	}
	before := state.Catalog
	after, account, err := e.Apply(ctx, state)
	if err != nil {
		return nil, err
	}
	if after == nil || account == nil {
		return nil, errors.New("the edit gave no catalog or no account")
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	before, after, err = withoutBroken(before, after, b.broken, o)
	if err != nil {
		return nil, err
	}
	p := &plan{reader: r, after: after.ByPackage(), changed: map[string]bool{}}
	then := before.ByPackage()
	for _, name := range account.Packages() {
		p.changed[name] = true
	}
	for _, list := range []map[string]*declcfg.Catalog{then, p.after} {
		for name := range list {
			p.changed[name] = p.changed[name] || !sameContent(then[name], p.after[name])
		}
	}
	maps.DeleteFunc(p.changed, func(_ string, changed bool) bool { return !changed })
	for name := range p.after {
		if name != "" {
			p.names = append(p.names, name)
		}
	}
	slices.Sort(p.names)
	origins := newOriginsAfter(b.origins, account.Origins, then, p.after, p.changed)
	p.result = &Result{Kind: r.kind(), Account: account, Findings: b.findings, Origins: origins.of,
		Unchanged: len(p.changed) == 0 && !e.Always}
	p.result.Changed = slices.Sorted(maps.Keys(p.changed))
	return p, nil
}

// withoutBroken removes the placeholders of invalid packages from the catalogs before and after an edit. It refuses
// those that the edit left in the catalog or changed.
func withoutBroken(before, after *declcfg.Catalog, list []broken, o Options) (_, _ *declcfg.Catalog, err error) {
	if len(list) == 0 {
		return before, after, nil
	}
	there := map[string]bool{}
	for i := range after.Packages {
		there[after.Packages[i].Name] = true
	}
	gone, filled := map[string]bool{}, withContent(after)
	var errs problem.List[error]
	for _, p := range list {
		if !there[p.name] {
			continue
		}
		gone[p.name] = true
		if !o.KeepGoing || filled[p.name] {
			errs.AddNew(func() error { return &BrokenError{p.name, p.reason, filled[p.name]} })
		}
	}
	without := func(c *declcfg.Catalog) *declcfg.Catalog {
		out := *c
		out.Packages = slices.DeleteFunc(slices.Clone(c.Packages), func(p declcfg.Package) bool { return gone[p.Name] })
		return &out
	}
	return without(before), without(after), errs.Err()
}

// sameContent reports whether two states of a package would be written in the same way.
func sameContent(a, b *declcfg.Catalog) bool {
	if a == nil || b == nil {
		return a == b
	}
	return shareMemory(a, b) || slices.Equal(sums(a), sums(b))
}

// shareMemory reports whether two catalogs share the memory of all blobs: edits pass on unchanged blobs without
// copying.
func shareMemory(a, b *declcfg.Catalog) bool {
	return slices.EqualFunc(a.Packages, b.Packages, func(x, y declcfg.Package) bool {
		return x.Name == y.Name && x.DefaultChannel == y.DefaultChannel && x.Description == y.Description &&
			x.Icon == y.Icon &&
			sameSlice(x.Properties, y.Properties) && sameSlice(x.Unknown, y.Unknown)
	}) && slices.EqualFunc(a.Channels, b.Channels, func(x, y declcfg.Channel) bool {
		return x.Name == y.Name && sameSlice(x.Entries, y.Entries) && sameSlice(x.Properties, y.Properties) &&
			sameSlice(x.Unknown, y.Unknown)
	}) && slices.EqualFunc(a.Bundles, b.Bundles, func(x, y declcfg.Bundle) bool {
		return x.Name == y.Name && x.Image == y.Image && sameSlice(x.Properties, y.Properties) &&
			sameSlice(x.RelatedImages, y.RelatedImages) && sameSlice(x.Unknown, y.Unknown)
	}) && slices.EqualFunc(a.Deprecations, b.Deprecations, func(x, y declcfg.Deprecations) bool {
		return sameSlice(x.Entries, y.Entries) && sameSlice(x.Unknown, y.Unknown)
	}) && slices.EqualFunc(a.Others, b.Others, func(x, y declcfg.Meta) bool {
		return x.Schema == y.Schema && x.Name == y.Name && sameSlice(x.Blob, y.Blob)
	})
}

// sameSlice reports whether two slices share their memory. Nothing of a state is modified in place, so such slices are
// equal.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// sums returns the sorted digests of all blobs.
func sums(c *declcfg.Catalog) []digest.Digest {
	var out []digest.Digest
	var text []byte
	for b := range c.All() {
		text = declcfg.AppendJSON(text[:0], b, false)
		out = append(out, digest.FromBytes(text))
	}
	slices.Sort(out)
	return out
}

// blobs yields the selected packages after the edit in writing order; a nil function selects all. It must not be called
// concurrently.
func (p *plan) blobs(ctx context.Context, wanted func(pkg string) bool) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		fromSource := map[string]bool{}
		names := p.names
		if p.after[""] != nil {
			names = append(slices.Clone(names), "")
		}
		for _, name := range names {
			c := p.after[name]
			use := !p.changed[name] || slices.ContainsFunc(c.Bundles,
				func(b declcfg.Bundle) bool { return b.Reduced() })
			fromSource[name] = use && (wanted == nil || wanted(name))
		}
		next, stop := iter.Pull2(p.reader.blobs(ctx, func(pkg string) bool { return fromSource[pkg] }))
		defer stop()
		s := &cursor{next: next}
		for _, name := range names {
			if wanted != nil && !wanted(name) {
				continue
			}
			var blobs iter.Seq2[declcfg.Blob, error]
			if p.changed[name] {
				blobs = s.restore(p.after[name], name)
			} else {
				blobs = s.pass(name)
			}
			for b, err := range blobs {
				if !yield(b, err) || err != nil {
					return
				}
			}
			for _, err := range s.pass(name) { // the rest of the package
				if err != nil {
					yield(nil, err)
					return
				}
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, context.Cause(ctx))
		}
	}
}

// cursor is a position in a stream of blobs.
type cursor struct {
	next func() (declcfg.Blob, error, bool)
	blob declcfg.Blob // returned by peek and not yet consumed
	err  error
	done bool
}

// peek returns the next blob without consuming it; nil at the end and after an error.
func (s *cursor) peek() (declcfg.Blob, error) {
	if s.blob == nil && s.err == nil && !s.done {
		var ok bool
		s.blob, s.err, ok = s.next()
		s.done = !ok
	}
	return s.blob, s.err
}

// pass yields the blobs of a package if it is next in the stream.
func (s *cursor) pass(pkg string) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		for {
			b, err := s.peek()
			if err != nil {
				yield(nil, err)
				return
			}
			if b == nil || b.BlobPackage() != pkg {
				return
			}
			s.blob = nil
			if !yield(b, nil) {
				return
			}
		}
	}
}

// restore yields the blobs of a package and adds the manifests from the stream to its bundles.
func (s *cursor) restore(c *declcfg.Catalog, pkg string) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		for b := range c.Blobs() {
			bundle, ok := b.(*declcfg.Bundle)
			if ok && bundle.Reduced() {
				full, err := s.find(pkg, bundle.Name)
				if err == nil {
					b, err = bundle.Restored(full)
				}
				if err != nil {
					yield(nil, err)
					return
				}
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// find consumes blobs of a package up to the bundle. The stream and the requests are both sorted by name.
func (s *cursor) find(pkg, name string) (*declcfg.Bundle, error) {
	for b, err := range s.pass(pkg) {
		if err != nil {
			return nil, err
		}
		if full, ok := b.(*declcfg.Bundle); ok && full.Name == name {
			return full, nil
		}
	}
	return nil, fmt.Errorf("package %q: the manifests of bundle %q are not there any more", pkg, name)
}
