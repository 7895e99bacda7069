package canon

import (
	"io"
	"strings"
	"testing"
)

// Detecting the end of a stream needs no more memory than reading its documents.
func TestSplitterRoom(t *testing.T) {
	for _, size := range []int{100, readSize / 2, readSize - leastRead} {
		s := NewSplitter(strings.NewReader("a: "+strings.Repeat("x", size-4)+"\n"), Limits{})
		for {
			if _, err := s.Next(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if cap(s.buf) != readSize {
			t.Errorf("%d bytes took room for %d, want %d", size, cap(s.buf), readSize)
		}
	}
}
