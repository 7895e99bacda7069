package cmdline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
)

func TestSpoolGivesBackWhatItWasGiven(t *testing.T) {
	random := make([]byte, 100<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	for _, answer := range [][]byte{nil, []byte("short"), bytes.Repeat([]byte("repeats itself, "), 10_000), random} {
		for _, memory := range []int{1, 10, 1000, 64 << 10, 1 << 20} {
			s := &Spool{Dir: t.TempDir(), Memory: memory}
			for rest := answer; len(rest) > 0; {
				n := min(len(rest), 777)
				if _, err := s.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			var out bytes.Buffer
			if err := s.Flush(t.Context(), &out); err != nil || !bytes.Equal(out.Bytes(), answer) {
				t.Errorf("%d bytes, memory %d: %d bytes came back: %v", len(answer), memory, out.Len(), err)
			}
			if memory >= 64<<10 && len(answer) != len(random) && s.packed != nil && s.packed.OnDisk() {
				t.Errorf("%d bytes that fit into %d when they are compressed went to the disk", len(answer), memory)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		}
	}
}

func TestSpoolThatFails(t *testing.T) {
	s := &Spool{Dir: t.TempDir() + "/missing", Memory: 100}
	defer s.Close()
	random := make([]byte, 4<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	_, err := s.Write(random)
	if err = errors.Join(err, s.Flush(t.Context(), io.Discard)); !errors.Is(err, os.ErrNotExist) ||
		Classify(err) != ClassLocal {
		t.Errorf("no directory: %v", err)
	}
	ended := &Spool{Memory: 10, Dir: t.TempDir()}
	defer ended.Close()
	fmt.Fprint(ended, "more than ten bytes")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	if err := ended.Flush(ctx, io.Discard); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
