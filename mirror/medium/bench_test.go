package medium_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// zeros is content of any length that takes no memory.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	n := min(int64(len(p)), z.n)
	clear(p[:n])
	if z.n -= n; z.n == 0 {
		return int(n), io.EOF
	}
	return int(n), nil
}

func (z *zeros) Close() error { return nil }

func zeroBlob(t testing.TB, size int64) v1.Descriptor {
	h := sha256.New()
	if _, err := io.Copy(h, &zeros{size}); err != nil {
		t.Fatal(err)
	}
	return v1.Descriptor{MediaType: layerType, Digest: digest.NewDigest(digest.SHA256, h), Size: size}
}

func openZeros(size int64) func(context.Context, int64) (io.ReadCloser, error) {
	return func(_ context.Context, from int64) (io.ReadCloser, error) { return &zeros{size - from}, nil }
}

// BenchmarkWrite writes a large blob: its digest, the sum of the segment, the bytes.
func BenchmarkWrite(b *testing.B) {
	const size = 256 << 20
	d := zeroBlob(b, size)
	b.SetBytes(size)
	for b.Loop() {
		w := create(b, b.TempDir(), medium.Options{})
		if _, err := w.Repository("a").WriteBlob(context.Background(), d, store.Content{Open: openZeros(size)}); err != nil {
			b.Fatal(err)
		}
		if err := w.Discard(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriteSmall writes many small blobs.
func BenchmarkWriteSmall(b *testing.B) {
	blobs := make([]blob, 2000)
	for i := range blobs {
		blobs[i] = blobOf(layerType, fmt.Appendf(nil, "%4096d", i))
	}
	b.SetBytes(2000 * 4096)
	for b.Loop() {
		w := create(b, b.TempDir(), medium.Options{})
		r := w.Repository("a")
		for _, one := range blobs {
			if _, err := r.WriteBlob(context.Background(), one.Descriptor, opener(one.content)); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Discard(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens an archive of 20,000 blobs, and BenchmarkResume goes on with one that is unfinished.
func BenchmarkOpen(b *testing.B) {
	for _, form := range bothForms {
		b.Run(string(form), func(b *testing.B) {
			dir := b.TempDir()
			w := create(b, dir, medium.Options{Form: form})
			many(b, w, 20_000)
			finish(b, w, medium.Contents{})
			for b.Loop() {
				r, err := medium.Open(context.Background(), dir)
				if err != nil {
					b.Fatal(err)
				}
				r.Close()
			}
		})
	}
}

// many writes blobs of 100 bytes, as images of one layer in repositories of 100 tags.
func many(t testing.TB, w *medium.Writer, blobs int) {
	for i := range blobs / 3 {
		r := w.Repository(fmt.Sprintf("acme/r%d", i/100))
		config := blobOf(v1.MediaTypeImageConfig, fmt.Appendf(nil, `{"architecture":"amd64","n":%d}`, i))
		layer := blobOf(layerType, fmt.Appendf(nil, "%100d", i))
		write(t, r, imageOf(t, nil, config, layer), fmt.Sprintf("v%d", i))
	}
}
