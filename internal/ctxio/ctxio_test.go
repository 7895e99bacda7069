package ctxio_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

func TestReaderAndWriterEndWithTheirContext(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := ctxio.Reader{Ctx: ctx, R: strings.NewReader("ab")}
	var text strings.Builder
	w := ctxio.Writer{Ctx: ctx, W: &text}
	if n, err := io.CopyN(w, r, 1); n != 1 || err != nil || text.String() != "a" {
		t.Errorf("got %q, %v", text.String(), err)
	}
	cancel(why)
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, why) {
		t.Errorf("read %d, %v", n, err)
	}
	if n, err := w.Write([]byte("b")); n != 0 || !errors.Is(err, why) || text.String() != "a" {
		t.Errorf("wrote %d, %v", n, err)
	}
}

// Concurrent copies do not share buffers.
func TestCopy(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("b", 300_000), "c"} {
		t.Run(text[:min(len(text), 1)], func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if n, err := ctxio.Copy(&out, strings.NewReader(text)); err != nil || n != int64(len(text)) ||
				out.String() != text {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
	if allocs := testing.AllocsPerRun(100,
		func() { _, _ = ctxio.Copy(io.Discard, strings.NewReader("a")) }); allocs > 10 {
		t.Errorf("%v allocations", allocs)
	}
}
