package imagefs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// Contents are what was put, in memory or not, also after one that ended early.
func TestHeap(t *testing.T) {
	h := newHeap(100, t.TempDir())
	defer h.close()
	if _, err := h.put(strings.NewReader("short"), 200); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a content that ends early: %v", err)
	}
	var contents []io.ReaderAt
	for i := range 100 {
		text := strings.Repeat(fmt.Sprint(i), 50*i)
		c, err := h.put(strings.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, c)
	}
	for i, c := range contents {
		want := strings.Repeat(fmt.Sprint(i), 50*i)
		got, err := io.ReadAll(io.NewSectionReader(c, 0, int64(len(want))))
		if err != nil || string(got) != want {
			t.Errorf("content %d has %d bytes: %v", i, len(got), err)
		}
	}
}

func BenchmarkHeap(b *testing.B) {
	for _, size := range []int{4 << 10, 4 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			content, back := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(size))
			h := newHeap(0, b.TempDir())
			defer h.close()
			for b.Loop() {
				c, err := h.put(bytes.NewReader(content), int64(size))
				if err == nil {
					_, err = c.ReadAt(back, 0)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
