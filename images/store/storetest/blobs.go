package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

// source is content that ends, fails or comes to a halt.
type source struct {
	*bytes.Reader
	stop error         // in place of the end
	wait chan struct{} // closed when stop is next: then it is the cause of the end of ctx
	ctx  context.Context
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	if s.wait != nil {
		close(s.wait)
		<-s.ctx.Done()
		return n, context.Cause(s.ctx)
	}
	if s.stop != nil {
		err = s.stop
	}
	return n, err
}

func (*source) Close() error { return nil }

// checkAbsentBlob checks that a blob is not there, not even a part of it.
func checkAbsentBlob(t testing.TB, r store.Reader, b blob) {
	t.Helper()
	if there, err := r.HasBlob(t.Context(), b.Descriptor); there || err != nil {
		t.Errorf("HasBlob(%s) after a failure: %v, %v", b.Digest, there, err)
	}
	if content, err := read(t, r, b.Descriptor, 0); err == nil {
		t.Errorf("Blob(%s) after a failure: %d of %d bytes", b.Digest, len(content), b.Size)
	}
}

// holds writes an image of blobs, commits it, and compares it: what nothing refers to need not stay.
func (p Place) holds(t testing.TB, w store.Writer, tag string, blobs ...blob) {
	t.Helper()
	i := newImage(t, tag, blobs...)
	if err := i.write(t.Context(), w, tag); err != nil {
		t.Fatal(err)
	}
	commit(t, w)
	i.check(t, p.reader(t), tag)
}

// Blobs with malformed digests or sizes, and content that is not what the descriptor says, are refused.
func checkWrongContent(t *testing.T, p Place) {
	w := p.Writer(t)
	for _, d := range hostileDigests {
		if _, err := w.WriteBlob(t.Context(), v1.Descriptor{Digest: d, Size: 3}, unread(t)); err == nil {
			t.Errorf("a blob with the digest %q is written", d)
		}
	}
	negative := layer("negative", 10)
	negative.Size = -1
	if _, err := w.WriteBlob(t.Context(), negative.Descriptor, unread(t)); err == nil {
		t.Error("a blob with a negative size is written")
	}
	var all []blob
	for _, size := range []int{1000, large} {
		b := layer(fmt.Sprint("wrong ", size), size)
		other := layer("other", size)
		for _, content := range [][]byte{other.content, b.content[:size-1], append(slices.Clone(b.content), 'x')} {
			err := store.WriteBytes(t.Context(), w, b.Descriptor, content)
			if err == nil || len(content) == size && !errors.Is(err, fault.ErrIntegrity) {
				t.Errorf("content of %d bytes for a blob of %d: %v", len(content), size, err)
			}
			if len(content) > size {
				continue // a place may have taken the bytes that are the blob, perhaps only now; holds compares them
			}
			checkAbsentBlob(t, w, b)
		}
		all = append(all, b)
	}
	p.holds(t, w, "v1", all...)
}

// A source breaks off at each tenth of a large blob. The place reads on from where it was, or returns the error; there
// is never a part of the blob.
func checkBrokenSources(t *testing.T, p Place) {
	w := p.Writer(t)
	var all []blob
	for tenth := range int64(11) {
		b := layer(fmt.Sprint("broken ", tenth), large)
		all = append(all, b)
		at := b.Size * tenth / 10
		broken := fmt.Errorf("broken at %d: %w", at, io.ErrUnexpectedEOF)
		opened := 0
		open := func(_ context.Context, from int64) (io.ReadCloser, error) {
			opened++
			if from < 0 || from > b.Size || opened == 1 && from != 0 || opened == 2 && from > at {
				t.Errorf("opened from %d, at %d of %d bytes", from, at, b.Size)
			}
			if opened == 1 {
				return &source{Reader: bytes.NewReader(b.content[:at]), stop: broken}, nil
			}
			return &source{Reader: bytes.NewReader(b.content[from:])}, nil
		}
		if _, err := w.WriteBlob(t.Context(), b.Descriptor, store.Content{Open: open}); err == nil {
			if opened < 2 && at < b.Size {
				t.Errorf("written, with a source of %d of %d bytes", at, b.Size)
			}
			continue
		} else if !errors.Is(err, broken) {
			t.Errorf("the error is %v, and that of the source %v", err, broken)
		}
		checkAbsentBlob(t, w, b)
		if err := store.WriteBytes(t.Context(), w, b.Descriptor, b.content); err != nil {
			t.Errorf("written after a failure: %v", err)
		}
	}
	gone := errors.New("the source is gone")
	b := layer("gone", large)
	for at, open := range []func(context.Context, int64) (io.ReadCloser, error){
		func(context.Context, int64) (io.ReadCloser, error) { return nil, gone },
		func(_ context.Context, from int64) (io.ReadCloser, error) {
			if from > large/2 {
				return nil, gone
			}
			return &source{Reader: bytes.NewReader(b.content[from : large/2]), stop: gone}, nil
		},
	} {
		if _, err := w.WriteBlob(t.Context(), b.Descriptor, store.Content{Open: open}); !errors.Is(err, gone) {
			t.Errorf("%d: the error of the source is %v: %v", at, gone, err)
		}
		checkAbsentBlob(t, w, b)
	}
	p.holds(t, w, "v1", append(all, b)...)
}

// A caller gives up in the middle of a blob, or before it.
func checkCancelled(t *testing.T, p Place) {
	w := p.Writer(t)
	b := layer("cancelled", large)
	if _, err := w.WriteBlob(cancelled(t), b.Descriptor, store.Bytes(b.content)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	checkAbsentBlob(t, w, b)
	ctx, cancel := context.WithCancel(t.Context())
	half, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		open := func(ctx context.Context, from int64) (io.ReadCloser, error) {
			return &source{Reader: bytes.NewReader(b.content[from : large/2]), wait: half, ctx: ctx}, nil
		}
		if _, err := w.WriteBlob(ctx, b.Descriptor, store.Content{Open: open}); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ends: %v", err)
		}
	}()
	select {
	case <-half:
	case <-done:
	}
	cancel()
	<-done
	checkAbsentBlob(t, w, b)
	p.holds(t, w, "v1", b)
}

// Many goroutines write, of two writers if there can be two, some of them the same blob.
func checkBlobsAtOnce(t *testing.T, p Place) {
	writers := []store.Writer{p.Writer(t)}
	if !p.Replaced {
		writers = append(writers, p.Writer(t))
	}
	var blobs []blob
	for i := range 12 {
		blobs = append(blobs, layer(fmt.Sprint("at once ", i), []int{10, 40_000, large}[i%3]))
	}
	var done sync.WaitGroup
	for _, w := range writers {
		for i := range 4 * len(blobs) {
			b := blobs[i%len(blobs)]
			done.Go(func() {
				if err := store.WriteBytes(t.Context(), w, b.Descriptor, b.content); err != nil {
					t.Errorf("blob of %d bytes: %v", b.Size, err)
				}
			})
		}
	}
	done.Wait()
	for i, w := range writers {
		p.holds(t, w, fmt.Sprint("v", i), blobs...)
	}
}

// Content that is a file, or that other repositories may have, is written whatever the place does with that.
func checkElsewhere(t *testing.T, p Place) {
	w := p.Writer(t)
	dir := t.TempDir()
	var all []blob
	for i, size := range []int{100, large} {
		b := layer(fmt.Sprint("elsewhere ", i), size)
		path := filepath.Join(dir, b.Digest.Encoded())
		if err := os.WriteFile(path, b.content, 0o600); err != nil {
			t.Fatal(err)
		}
		c := store.Bytes(b.content)
		c.Repositories = []string{"registry.invalid/a/b", w.Name(), "", "no repository", "../.."}
		c.File = func(context.Context, bool) (string, bool) { return path, true }
		if _, err := w.WriteBlob(t.Context(), b.Descriptor, c); err != nil {
			t.Errorf("content in a file: %v", err)
		}
		other := layer(fmt.Sprint("in no file ", i), size)
		c = store.Bytes(other.content)
		c.File = func(context.Context, bool) (string, bool) { return "", false }
		if _, err := w.WriteBlob(t.Context(), other.Descriptor, c); err != nil {
			t.Errorf("content in no file: %v", err)
		}
		all = append(all, b, other)
	}
	p.holds(t, w, "v1", all...)
	for _, b := range all {
		path := filepath.Join(dir, b.Digest.Encoded())
		if now, err := os.ReadFile(path); err == nil && !bytes.Equal(now, b.content) {
			t.Errorf("the file of the content is changed: %d bytes", len(now))
		}
	}
}

// Reading a blob whose content has changed is an error.
func checkCorrupt(t *testing.T, p Place) {
	if p.Corrupt == nil && p.Dir == "" {
		return
	}
	small, big := layer("corrupt small", 1000), layer("corrupt", large)
	i := newImage(t, "corrupt", small, big)
	p.write(t, i, "v1")
	for _, b := range []blob{small, big} {
		p.corrupt(t, b)
		if content, err := read(t, p.reader(t), b.Descriptor, 0); !errors.Is(err, fault.ErrIntegrity) {
			t.Errorf("a blob that has changed: %d bytes: %v", len(content), err)
		}
	}
	p.corrupt(t, i.blob)
	if text, _, err := p.reader(t).Manifest(t.Context(), i.Digest.String()); err == nil {
		t.Errorf("a manifest that has changed: %s", text)
	}
}

// corrupt changes a byte of what is committed with a digest.
func (p Place) corrupt(t testing.TB, b blob) {
	t.Helper()
	if p.Corrupt != nil {
		p.Corrupt(t, b.Digest)
		return
	}
	found := false
	err := filepath.WalkDir(p.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		at := bytes.Index(text, b.content)
		if at < 0 {
			return nil
		}
		found = true
		text[at+len(b.content)/2] ^= 1
		return os.WriteFile(path, text, 0o600)
	})
	if err != nil || !found {
		t.Fatalf("%s is not to be found in the files: %v", b.Digest, err)
	}
}
