package images

import (
	"bufio"
	"bytes"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// A bundle has several layers of a few hundred bytes, whose memory is taken as often.
func TestDecompressRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		size int64
		want int
	}{
		{"a small layer takes its own size", 1000, 1000},
		{"a large layer", 1 << 30, 128 << 10},
		{"a size that is not known", -1, 128 << 10},
		{"an empty layer can be looked into", 0, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := decompress(bytes.NewReader(nil), v1.MediaTypeImageLayer, c.size)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.(*wholeStream).below.(*bufio.Reader).Size(); got != c.want {
				t.Errorf("room for %d bytes, want %d", got, c.want)
			}
		})
	}
}
