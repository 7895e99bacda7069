package declcfg

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"sort"
	"sync"
)

// errEnough ends a stream early.
var errEnough = errors.New("no more is wanted")

// Stream yields the blobs of the catalog in fsys in the order of [Catalog.Blobs], whatever the layout of its files. It
// reads the files twice: first to index the blobs, see [NewIndex], and then to read them. A few blobs that are read
// ahead and the index are in memory. wanted, unless nil, selects the packages; blobs of others are not parsed, and
// their problems are reported only if they hide which package they belong to. The empty name stands for blobs of no
// package.
//
// The error is that of [Load], with the problems of all files, but may come after some blobs. Each blob belongs to the
// caller.
func Stream(ctx context.Context, fsys fs.FS, o LoadOptions, wanted func(pkg string) bool) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		x, err := NewIndex(ctx, fsys, o)
		switch {
		case errors.Is(err, ErrIrregular):
			streamLoaded(ctx, fsys, o, wanted)(yield)
		case err != nil:
			yield(nil, wholeError(ctx, fsys, o, err))
		default:
			x.Blobs(ctx, wanted)(yield)
		}
	}
}

// streamLoaded is like Stream, for catalogs that must be loaded completely.
func streamLoaded(ctx context.Context, fsys fs.FS, o LoadOptions, wanted func(pkg string) bool) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		c, err := Load(ctx, fsys, o)
		if err != nil {
			yield(nil, err)
			return
		}
		for b := range c.Blobs() {
			if (wanted == nil || wanted(b.BlobPackage())) && !yield(b, nil) {
				return
			}
		}
	}
}

// wholeError returns the problems of all files, if some were found before everything was read. Other errors are
// unchanged.
func wholeError(ctx context.Context, fsys fs.FS, o LoadOptions, err error) error {
	var invalid *ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	o.Document = nil
	all := WalkBlobs(ctx, fsys, o, func(Blob) error { return nil })
	if all == nil {
		return err // a file changed meanwhile
	}
	return all
}

// Blobs yields the blobs of the wanted packages as [Stream] does.
func (x *Index) Blobs(ctx context.Context, wanted func(pkg string) bool) iter.Seq2[Blob, error] {
	if wanted == nil {
		return x.selected(ctx, nil)
	}
	return x.selected(ctx, func(d *IndexedDocument) bool { return wanted(d.Package) })
}

// PackageBlobs yields the blobs of one package in the order of [Stream]. It reads nothing else: its time does not
// depend on the size of the catalog, and its error is about the first blob of the package that cannot be read.
func (x *Index) PackageBlobs(ctx context.Context, pkg string) iter.Seq2[Blob, error] {
	x.once.Do(func() {
		x.byPackage = map[string][]int{}
		for _, n := range x.order(nil) {
			if d := &x.docs[n]; hasPlace(Rank(d.Schema), d.Package) {
				x.byPackage[d.Package] = append(x.byPackage[d.Package], n)
			}
		}
	})
	return x.inOrder(ctx, func() []int { return x.byPackage[pkg] }, func(_ LoadOptions, err error) error { return err })
}

// selected is like [Index.Blobs], for the wanted documents.
func (x *Index) selected(ctx context.Context, wanted func(*IndexedDocument) bool) iter.Seq2[Blob, error] {
	return x.inOrder(ctx, func() []int { return x.order(wanted) }, func(o LoadOptions, err error) error {
		return wholeError(ctx, x.fsys, o, err)
	})
}

// inOrder yields documents. problem completes the error of one that cannot be read.
func (x *Index) inOrder(ctx context.Context, documents func() []int,
	problem func(LoadOptions, error) error) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		order := documents()
		warned := once{warn: x.options.Warn, seen: map[warning]bool{}}
		o := x.options
		if o.Warn != nil {
			o.Warn = warned.report
		}
		units := x.divide(order)
		err := inOrder(ctx, o, len(units), aheadBytes/2,
			func(ctx context.Context, d *docReader, i int, hand func(Blob) error) error {
				for _, n := range units[i] {
					if err := ctx.Err(); err != nil {
						return err
					}
					b, err := d.readAt(x.fsys, &x.docs[n])
					if err != nil {
						return d.problem(err)
					}
					if err := hand(b); err != nil {
						return err
					}
				}
				return nil
			}, func(b Blob) error {
				if rank, _ := orderOf(b); hasPlace(rank, b.BlobPackage()) && !yield(b, nil) {
					return errEnough
				}
				return nil
			})
		if err != nil && !errors.Is(err, errEnough) {
			o.Files = x.options.Files
			yield(nil, problem(o, err))
		}
	}
}

// Stubs loads the catalog with stubs of the bundles of packages outside of scope, which have names and image only, and
// digests of icons only. The images of bundles are those in the index. Blobs without a position in the writing order
// are omitted.
func (x *Index) Stubs(ctx context.Context, scope func(pkg string) bool) (*Catalog, error) {
	isStub := func(d *IndexedDocument) bool { return d.Schema == SchemaBundle && !scope(d.Package) }
	c := &Catalog{}
	for b, err := range x.selected(ctx, func(d *IndexedDocument) bool { return !isStub(d) }) {
		if err != nil {
			return nil, err
		}
		if p, ok := b.(*Package); ok && p.Icon != nil && !scope(p.Name) {
			p.Icon = &Icon{MediaType: p.Icon.MediaType, dropped: p.Icon.Digest()}
		}
		c.Add(b)
	}
	n := 0
	for i := range x.docs {
		if isStub(&x.docs[i]) {
			n++
		}
	}
	c.Bundles = slices.Grow(c.Bundles, n)
	for i := range x.docs {
		if d := &x.docs[i]; isStub(d) && d.Package != "" {
			c.Bundles = append(c.Bundles, stubOf(d))
		}
	}
	return c, nil
}

// order returns the indices of the wanted documents in writing order. Those without a position in it come last: they
// are read to report their problems.
func (x *Index) order(wanted func(*IndexedDocument) bool) []int {
	var order []int
	for i := range x.docs {
		d := &x.docs[i]
		if wanted == nil || hasPlace(Rank(d.Schema), d.Package) && wanted(d) {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := &x.docs[order[i]], &x.docs[order[j]]
		if (a.Package == "") != (b.Package == "") {
			return b.Package == ""
		}
		rankA, keyA := writingOrder(a.Schema, a.Name)
		rankB, keyB := writingOrder(b.Schema, b.Name)
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(rankA, rankB), cmp.Compare(keyA, keyB)) < 0
	})
	return order
}

// divide splits documents into units of work that are small enough to be handed over at once.
func (x *Index) divide(order []int) [][]int {
	var units [][]int
	for from := 0; from < len(order); {
		to, size := from, int64(0)
		for to < len(order) && to-from < pieceBlobs && size < pieceBytes {
			size += x.docs[order[to]].End - x.docs[order[to]].Start
			to++
		}
		units = append(units, order[from:to])
		from = to
	}
	return units
}

// once passes on each warning once, as a file may be read twice.
type once struct {
	warn func(Position, string)
	mu   sync.Mutex
	seen map[warning]bool
}

type warning struct {
	at   Position
	text string
}

func (o *once) report(at Position, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := (warning{at, text}); !o.seen[w] {
		o.seen[w] = true
		o.warn(at, text)
	}
}
