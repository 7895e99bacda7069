package medium_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// breaking is content that breaks off after some bytes of each attempt.
type breaking struct {
	content []byte
	after   int
	read    int
	opened  []int64
	err     error
}

func (b *breaking) open(_ context.Context, from int64) (io.ReadCloser, error) {
	b.opened = append(b.opened, from)
	return io.NopCloser(&breakingReader{b, b.content[from:], b.after}), nil
}

type breakingReader struct {
	b    *breaking
	rest []byte
	left int
}

func (r *breakingReader) Read(p []byte) (int, error) {
	if r.left == 0 && r.b.err != nil {
		return 0, r.b.err
	}
	n := copy(p, r.rest)
	if r.b.after > 0 {
		n = min(n, r.left)
		r.left -= n
	}
	r.rest = r.rest[n:]
	r.b.read += n
	if len(r.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

var errReset = errors.New("connection reset by peer")

// A blob that breaks off goes on where it was; one that is another, or longer, or never moves, leaves no trace.
func TestBlobsThatBreakOff(t *testing.T) {
	good := blobOf(layerType, noise(1, 3_000_000))
	small := blobOf(layerType, noise(2, 30_000))
	other := append(noise(1, 2_999_999), 'x')
	for _, c := range []struct {
		name    string
		is      blob
		content []byte
		after   int
		err     error
		class   fault.Class
		opened  int
	}{
		{"large, breaks off", good, good.content, 1_000_000, errReset, 0, 3},
		{"small, breaks off", small, small.content, 9_000, errReset, 0, 4},
		{"ends early and cleanly", good, good.content[:1000], 0, nil, -1, 3},
		{"another content", good, other, 0, nil, fault.Integrity, 1},
		{"another content after a break", good, other, 1_600_000, errReset, fault.Integrity, 2},
		{"longer", good, append(slices.Clone(good.content), 0), 0, nil, fault.Integrity, 1},
		{"small, longer", small, append(slices.Clone(small.content), 0), 0, nil, fault.Integrity, 1},
		{"small, another", small, noise(3, 30_000), 0, nil, fault.Integrity, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			w := create(t, dir, medium.Options{})
			r := w.Repository("acme/app")
			b := &breaking{content: c.content, after: c.after, err: c.err}
			_, err := r.WriteBlob(context.Background(), c.is.Descriptor, store.Content{Open: b.open})
			if len(b.opened) != c.opened || c.class == 0 && (err != nil || b.read != len(c.content)) {
				t.Errorf("%v, %v, %d bytes read", err, b.opened, b.read)
			}
			if c.class != 0 && (err == nil || c.class > 0 && fault.ClassOf(err) != c.class) {
				t.Error(err)
			}
			if w.Has(c.is.Digest) != (c.class == 0) {
				t.Error("has it")
			}
			// The archive is good anyway.
			image := simple(t, "app", 1, 3_000_000, 5)
			write(t, r, image, "v1")
			finish(t, w, medium.Contents{})
			same(t, read(t, dir).Repository("acme/app"), image, "v1")
		})
	}
}

// A file that is larger than a segment gets its own, with the size to set; or it is an error, before it is fetched.
func TestLargerThanASegment(t *testing.T) {
	image := simple(t, "app", 1, 3_000_000, 5)
	dir := t.TempDir()
	warned := ""
	w := create(t, dir, medium.Options{SegmentBytes: 1 << 20, Event: func(e store.Event) {
		if e.Kind == store.EventWarning {
			warned += e.Err.Error()
		}
	}})
	write(t, w.Repository("acme/app"), image, "v1")
	account := finish(t, w, medium.Contents{})
	if len(account.Segments) != 3 || !strings.Contains(warned, "archiveSize: 1 would do") {
		t.Errorf("%v %q", account.Segments, warned)
	}
	w = create(t, t.TempDir(), medium.Options{SegmentBytes: 1 << 20, Strict: true})
	r := w.Repository("acme/app")
	_, err := r.WriteBlob(context.Background(), image.blobs[1].Descriptor,
		store.Content{Open: func(context.Context, int64) (io.ReadCloser, error) { panic("it is fetched") }})
	if fault.ClassOf(err) != fault.Limit || !strings.Contains(err.Error(), "archiveSize") {
		t.Error(err)
	}
}
