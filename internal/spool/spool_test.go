package spool_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/operator-bindery/bindery/internal/spool"
)

// Appended bytes can be read at any offset, whether they are in memory, in the file or in both.
func TestReadBack(t *testing.T) {
	want := make([]byte, 3*spool.Buffer+5)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(want)
	for _, piece := range []int{1000, spool.Buffer - 1, spool.Buffer, spool.Buffer + 1, len(want)} {
		for _, memory := range []int{0, 2 * spool.Buffer, len(want)} {
			dir := t.TempDir()
			s := spool.New(dir, memory)
			for rest := want; len(rest) > 0; {
				n := min(len(rest), piece)
				at, err := s.Append(rest[:n])
				if err != nil || at.Len != int64(n) || at.At != int64(len(want)-len(rest)) {
					t.Fatalf("%+v, %v", at, err)
				}
				rest = rest[n:]
			}
			if s.OnDisk() != (memory < len(want)) || s.Len() != int64(len(want)) {
				t.Errorf("memory %d: on disk %v, %d bytes", memory, s.OnDisk(), s.Len())
			}
			if left, err := os.ReadDir(dir); runtime.GOOS != "windows" && (err != nil || len(left) > 0) {
				t.Errorf("the file has a name: %v, %v", left, err)
			}
			for _, at := range []spool.Span{{0, int64(len(want))}, {spool.Buffer - 3, 7}, {3*spool.Buffer - 1, 6},
				{5, 0}} {
				var got bytes.Buffer
				if err := s.Copy(t.Context(), &got, at); err != nil || !bytes.Equal(got.Bytes(),
					want[at.At:at.At+at.Len]) {
					t.Errorf("%+v: %d bytes, %v", at, got.Len(), err)
				}
			}
			if n, err := s.ReadAt(make([]byte, 10), int64(len(want))-4); n != 4 || err != io.EOF {
				t.Errorf("at the end: %d, %v", n, err)
			}
			if err := errors.Join(s.Close(), s.Close()); err != nil {
				t.Error(err)
			}
			if _, err := s.ReadAt(make([]byte, 1), 0); err == nil {
				t.Error("read after it was closed")
			}
			if _, err := s.Write(nil); err == nil {
				t.Error("written after it was closed")
			}
		}
	}
}

func TestFailures(t *testing.T) {
	s := spool.New(t.TempDir()+"/missing", 0)
	if _, err := s.Write(make([]byte, spool.Buffer+1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	if _, err := s.AppendFrom(ctx, bytes.NewReader(make([]byte, 10))); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkWrite(b *testing.B) {
	p := make([]byte, 4<<10)
	for b.Loop() {
		s := spool.New("", 0)
		for range 1000 {
			if _, err := s.Write(p); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(1000 * int64(len(p)))
}
