package medium_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// A disk that is full is reported, what is written stays, and the next run goes on when there is room. Whatever is
// written at that moment: a blob, a link, the description.
func TestFullDisk(t *testing.T) {
	s := newSample(t)
	for _, form := range bothForms {
		whole := t.TempDir()
		w := create(t, whole, medium.Options{Form: form, Key: "k"})
		s.write(t, w)
		want := finish(t, w, medium.Contents{})
		for room := want.Bytes - 60<<10; room < want.Bytes+8<<10; room += 4 << 10 {
			dir := t.TempDir()
			mount(t, dir, room)
			w := create(t, dir, medium.Options{Form: form, Key: "k"})
			err := s.tryWrite(w)
			if err == nil {
				_, err = w.Finish(t.Context(), medium.Contents{})
			}
			if err == nil {
				continue
			}
			if !errors.Is(err, syscall.ENOSPC) || fault.ClassOf(err) != fault.Local ||
				!strings.Contains(err.Error(), "no space") {
				t.Fatalf("%d bytes: %v", room, err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			remount(t, dir, 2*want.Bytes)
			w = create(t, dir, medium.Options{Form: form, Key: "k"})
			if w.Resumed() < 1_000_000 {
				t.Errorf("%d bytes: %d resumed", room, w.Resumed())
			}
			s.write(t, w)
			if got := finish(t, w, medium.Contents{}); got.Segments[0] != want.Segments[0] {
				t.Errorf("%d bytes: %v instead of %v", room, got.Segments, want.Segments)
			}
			s.same(t, read(t, dir))
		}
	}
}

// mount gives a directory a file system of a size.
func mount(t *testing.T, dir string, size int64) {
	t.Helper()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size))
	if errors.Is(err, syscall.EPERM) {
		t.Skip("may not mount")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

func remount(t *testing.T, dir string, size int64) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatal(err)
	}
}
