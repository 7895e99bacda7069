package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// visits is a walk that notes what it comes to, by names of digests: "(" and ")" for an index and its end.
type visits struct {
	names map[digest.Digest]string
	got   []string
}

func (v *visits) options(s *source) store.WalkOptions {
	return store.WalkOptions{
		Read: store.ReadFrom(s),
		Visit: func(_ context.Context, n *store.Node) error {
			name := v.names[n.Digest]
			if n.Parts == nil {
				name += "?"
			}
			if len(n.Entries) > 0 {
				name += "("
			}
			v.got = append(v.got, name)
			return nil
		},
		Leave: func(_ context.Context, n *store.Node) error {
			if n.Parts != nil && len(n.Parts.Manifests) > 0 {
				v.got = append(v.got, ")")
			}
			return nil
		},
	}
}

func (v *visits) expect(t *testing.T, err error, want string) {
	t.Helper()
	if got := strings.Join(v.got, " "); err != nil || got != want {
		t.Errorf("%s and not %s: %v", got, want, err)
	}
}

// shared is an index of a, an index of b and c, an index of c, a and d, and c.
func shared(t *testing.T) (*source, v1.Descriptor, map[digest.Digest]string) {
	s := newSource()
	a, b, c, d := s.image(t, "a"), s.image(t, "b"), s.image(t, "c"), s.image(t, "d")
	x, y := s.index(t, b, c), s.index(t, c, a, d)
	top := s.index(t, a, x, y, c, x)
	return s, top, map[digest.Digest]string{top.Digest: "top", a.Digest: "a", b.Digest: "b", c.Digest: "c",
		d.Digest: "d", x.Digest: "x", y.Digest: "y"}
}

// The order is that of the indexes, however many manifests are read at once and whichever is there first.
func TestWalkOrder(t *testing.T) {
	s, top, names := shared(t)
	for _, atOnce := range []int{0, 1, 3, 100} {
		v := &visits{names: names}
		o := v.options(s)
		o.AtOnce = atOnce
		v.expect(t, store.Walk(t.Context(), store.Node{Descriptor: top}, o), "top( a x( b c ) y( d ) )")
	}
	v := &visits{names: names}
	o := v.options(s)
	o.Repeats = true
	v.expect(t, store.Walk(t.Context(), store.Node{Descriptor: top}, o),
		"top( a x( b c ) y( c a d ) c x( b c ) )")
}

// As many entries as was said are read at once, and each digest once.
func TestWalkReadsAhead(t *testing.T) {
	s := newSource()
	var entries []v1.Descriptor
	for i := range 20 {
		entries = append(entries, s.image(t, fmt.Sprint(i)))
	}
	top := s.index(t, append(entries, entries...)...)
	var running, reads atomic.Int32
	var first sync.WaitGroup
	first.Add(3)
	o := store.WalkOptions{AtOnce: 3, Read: func(ctx context.Context, n *store.Node) error {
		if running.Add(1) > 3 {
			t.Error("more than three at once")
		}
		defer running.Add(-1)
		reads.Add(1)
		if slices.ContainsFunc(entries[:3], func(d v1.Descriptor) bool { return d.Digest == n.Digest }) {
			first.Done()
			first.Wait()
		}
		return store.ReadFrom(s)(ctx, n)
	}}
	if err := store.Walk(t.Context(), store.Node{Descriptor: top}, o); err != nil || reads.Load() != 21 {
		t.Errorf("%d reads: %v", reads.Load(), err)
	}
}

// Visit chooses what is below; of what is not chosen nothing is read.
func TestWalkChosen(t *testing.T) {
	s, top, names := shared(t)
	v := &visits{names: names}
	o := v.options(s)
	visit := o.Visit
	var mu sync.Mutex
	var read []string
	o.Read = func(ctx context.Context, n *store.Node) error {
		mu.Lock()
		read = append(read, names[n.Digest])
		mu.Unlock()
		return store.ReadFrom(s)(ctx, n)
	}
	o.Visit = func(ctx context.Context, n *store.Node) error {
		switch names[n.Digest] {
		case "top":
			n.Entries = n.Entries[1:3]
		case "x":
			n.Entries = nil
		}
		return visit(ctx, n)
	}
	o.AtOnce = 8
	err := store.Walk(t.Context(), store.Node{Descriptor: top}, o)
	v.expect(t, err, "top( x ) y( c a d ) )")
	slices.Sort(read)
	if got := strings.Join(read, " "); got != "a c d top x y" {
		t.Errorf("%s were read", got)
	}
}

// What Read leaves as it is, as it is missing, is visited without parts; its error ends the walk at its place.
func TestWalkMissing(t *testing.T) {
	s, top, names := shared(t)
	for d, name := range names {
		if name == "x" || name == "a" {
			delete(s.Manifests, d.String())
		}
	}
	v := &visits{names: names}
	o := v.options(s)
	o.AtOnce = 2
	read := o.Read
	o.Read = func(ctx context.Context, n *store.Node) error {
		err := read(ctx, n)
		if names[n.Digest] == "a" && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := store.Walk(t.Context(), store.Node{Descriptor: top}, o); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	v.expect(t, nil, "top( a?")
}

// A node knows the indexes that it is in. The text of the outermost may be there.
func TestWalkPlaces(t *testing.T) {
	s, top, names := shared(t)
	var got []string
	err := store.Walk(t.Context(), store.Node{Text: s.Manifests[top.Digest.String()], Kind: top.MediaType},
		store.WalkOptions{
			Read: store.ReadFrom(s),
			Visit: func(_ context.Context, n *store.Node) error {
				place := fmt.Sprintf("%s %d", names[n.Digest], n.Depth)
				if n.Above != nil {
					place += " in " + names[n.Above.Digest]
				}
				got = append(got, place)
				return nil
			},
		})
	want := []string{"top 0", "a 1 in top", "x 1 in top", "b 2 in x", "c 2 in x", "y 1 in top", "d 2 in y"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q: %v", got, err)
	}
}

// Images beyond the limits, or that do not agree with their indexes, are errors.
func TestWalkRefuses(t *testing.T) {
	s := newSource()
	image := s.image(t, "image")
	nest := func(d v1.Descriptor, n int) v1.Descriptor {
		for range n {
			d = s.index(t, d)
		}
		return d
	}
	var many []v1.Descriptor
	for i := range limit.MaxIndexEntries {
		many = append(many, v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Size: 2,
			Digest: digest.FromString(fmt.Sprint(i))})
	}
	sized := func(d v1.Descriptor, size int64) v1.Descriptor {
		d.Size = size
		return d
	}
	kind := func(d v1.Descriptor, mediaType string) v1.Descriptor {
		d.MediaType = mediaType
		return d
	}
	changed := s.image(t, "changed")
	s.Manifests[changed.Digest.String()] = s.Manifests[image.Digest.String()]
	self := s.index(t, s.image(t, "looped"))
	loop := s.index(t, self)
	s.Manifests[self.Digest.String()] = s.Manifests[loop.Digest.String()]
	large := s.put(t, v1.Manifest{Annotations: map[string]string{"a": strings.Repeat("a", limit.MaxManifest)}},
		v1.MediaTypeImageManifest)
	wrongLayer := s.image(t, "wrong layer", v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Size: 1,
		Digest: image.Digest})
	for name, c := range map[string]struct {
		top  v1.Descriptor
		want error
	}{
		"as deep as may be":      {nest(image, limit.MaxIndexDepth), nil},
		"deeper":                 {nest(image, limit.MaxIndexDepth+1), fault.ErrLimit},
		"an index too deep":      {nest(s.index(t), limit.MaxIndexDepth+1), fault.ErrLimit},
		"as many as may be":      {s.index(t, many...), nil},
		"too many in two":        {s.index(t, s.index(t, many[1:]...), image), fault.ErrLimit},
		"too large":              {large, fault.ErrLimit},
		"another text":           {s.index(t, changed), fault.ErrIntegrity},
		"a loop":                 {loop, fault.ErrIntegrity},
		"another size":           {s.index(t, sized(image, image.Size+1)), fault.ErrInvalid},
		"two sizes of one":       {s.index(t, image, wrongLayer), fault.ErrInvalid},
		"another kind":           {kind(image, v1.MediaTypeImageIndex), fault.ErrInvalid},
		"another digest":         {v1.Descriptor{Digest: "sha256:0"}, fault.ErrInvalid},
		"a digest of other kind": {v1.Descriptor{Digest: digest.SHA512.FromString("")}, fault.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			err := store.Walk(t.Context(), store.Node{Descriptor: c.top}, store.WalkOptions{AtOnce: 8,
				Read: func(ctx context.Context, n *store.Node) (err error) {
					if text, ok := s.Manifests[n.Digest.String()]; ok {
						n.Text = text
					}
					return nil
				}})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%v and not %v", err, c.want)
			}
		})
	}
}

// The end of the context, and an error of Visit, are the end of the walk, and of what is read ahead.
func TestWalkEnds(t *testing.T) {
	s, top, names := shared(t)
	stop := errors.New("stop")
	for _, how := range []string{"error", "context", "leave"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var running atomic.Int32
		visited := 0
		end := func() error {
			if how == "context" {
				cancel(stop)
				return nil
			}
			return stop
		}
		err := store.Walk(ctx, store.Node{Descriptor: top}, store.WalkOptions{
			AtOnce: 8,
			Read: func(ctx context.Context, n *store.Node) error {
				running.Add(1)
				defer running.Add(-1)
				if names[n.Digest] == "y" {
					<-ctx.Done() // is read ahead
					return ctx.Err()
				}
				return store.ReadFrom(s)(ctx, n)
			},
			Visit: func(_ context.Context, n *store.Node) error {
				if visited++; names[n.Digest] == "a" && how != "leave" {
					return end()
				}
				return nil
			},
			Leave: func(_ context.Context, n *store.Node) error {
				if names[n.Digest] == "a" {
					return end()
				}
				return nil
			},
		})
		if !errors.Is(err, stop) || visited != 2 || running.Load() != 0 {
			t.Errorf("%s: %v after %d, with %d running", how, err, visited, running.Load())
		}
		cancel(nil)
	}
}
