package layers

import (
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compression is the codec of a layer.
type Compression string

// The codecs.
const (
	Gzip         Compression = "gzip"
	Zstd         Compression = "zstd"
	Uncompressed Compression = "none"
)

// ParseCompression returns the codec of that name: gzip, zstd or none.
func ParseCompression(name string) (Compression, error) {
	switch c := Compression(name); c {
	case Gzip, Zstd, Uncompressed:
		return c, nil
	}
	return "", fmt.Errorf("unknown compression %q: it is gzip, zstd or none", name)
}

// The levels are part of every digest: changing one, or the library that implements it, changes every layer of every
// catalog. The golden digests in the tests guard them.
const (
	// gzipLevel 5: on real catalogs it takes 0.7 times the CPU of level 6 for 5 % more bytes, and gzip takes most of
	// the time of a build.
	gzipLevel = 5
	// The default level is the fastest one that finds the repetitions in a catalog; the next one takes twice the time
	// for a tenth less.
	zstdLevel = zstd.SpeedDefault
	// zstdWindow is the distance at which repetitions are found. It is a quarter of the library's default: compared
	// with half the default, the encoders of two workers need 5 MB less, for 3 % more bytes of a catalog with large
	// packages.
	zstdWindow = 2 << 20
)

// codec is a compressor that can be reused for one layer after another, but not concurrently.
type codec interface {
	io.WriteCloser
	Reset(io.Writer)
}

// newCodec returns the compressor of c. It runs on the goroutine that writes, so that the output does not depend on the
// number of processors; layers are compressed in parallel instead.
func newCodec(c Compression) (codec, error) {
	switch c {
	case Gzip:
		w, err := gzip.NewWriterLevel(nil, gzipLevel)
		return timeless{w}, err
	case Zstd:
		return zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstdLevel),
			zstd.WithWindowSize(zstdWindow),
			zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true),
		)
	case Uncompressed:
		return &plain{}, nil
	}
	return nil, fmt.Errorf("unknown compression %q", c)
}

// timeless is gzip with an empty header: the library would write the lowest 32 bits of the zero time.
type timeless struct{ *gzip.Writer }

func (t timeless) Reset(w io.Writer) {
	t.Writer.Reset(w)
	t.Writer.Header.ModTime = time.Unix(0, 0)
}

// plain is the codec without compression.
type plain struct{ io.Writer }

func (p *plain) Reset(w io.Writer) { p.Writer = w }
func (p *plain) Close() error      { return nil }
