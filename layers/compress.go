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

// The levels are part of every digest: changing one, or the library that implements it, makes every layer of every
// catalog new. The golden digests of the tests guard them.
const (
	// gzipLevel 5: on real catalogs it takes 0.7 times the CPU of level 6 for 5 % more bytes, and gzip is most of the
	// time of an assembly.
	gzipLevel = 5
	// The default level is the fastest that finds the repetitions of a catalog; the next one takes twice the time for
	// a tenth less.
	zstdLevel = zstd.SpeedDefault
	// zstdWindow is how far back repetitions are found. A quarter of the library's choice: the encoders of two workers
	// take 5 MB less than with half of it, for 3 % more bytes of a catalog with large packages.
	zstdWindow = 2 << 20
)

// codec is a compressor that can be used for one layer after another; not by two at once.
type codec interface {
	io.WriteCloser
	Reset(io.Writer)
}

// newCodec makes the compressor of c. Both run on the goroutine that writes: the output never depends on the number of
// processors, and parallelism is that of whole layers.
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

// timeless is gzip with an empty header: the library would write the zero time's lowest 32 bits.
type timeless struct{ *gzip.Writer }

func (t timeless) Reset(w io.Writer) {
	t.Writer.Reset(w)
	t.Writer.Header.ModTime = time.Unix(0, 0)
}

// plain is the codec that changes nothing.
type plain struct{ io.Writer }

func (p *plain) Reset(w io.Writer) { p.Writer = w }
func (p *plain) Close() error      { return nil }
