package imagefs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// Magic has the first bytes of compressed streams, by codec.
var Magic = map[string][]byte{
	"gzip":  {0x1f, 0x8b},
	"zstd":  {0x28, 0xb5, 0x2f, 0xfd},
	"xz":    {0xfd, '7', 'z', 'X', 'Z', 0},
	"bzip2": {'B', 'Z', 'h'},
}

// Codec returns the codec of a compressed stream by its first bytes, empty if it is not compressed.
func Codec(head []byte) string {
	for name, magic := range Magic {
		// The name of an archive's first file may begin as a bzip2 stream does, but not go on so.
		if bytes.HasPrefix(head, magic) && (name != "bzip2" || len(head) > 6 && string(head[4:7]) == "1AY") {
			return name
		}
	}
	return ""
}

// CheckPlain returns an error with advice about an archive that is compressed, by its first bytes.
func CheckPlain(head []byte) error {
	if codec := Codec(head); codec != "" {
		return PackedError(codec)
	}
	return nil
}

// PackedError is the error about an archive that is compressed and must not be.
func PackedError(codec string) error {
	return fmt.Errorf("%w: it is compressed with %s: decompress it with \"%s -dc\"", fault.ErrInvalid, codec, codec)
}

// Decompress returns the archive in a layer. The media type and the content must agree on the codec. size is that of
// the layer in bytes, negative if unknown.
func Decompress(r io.Reader, mediaType string, size int64) (io.ReadCloser, error) {
	want, err := codecOf(mediaType)
	if err != nil {
		return nil, err
	}
	room := int64(128 << 10)
	if size >= 0 {
		room = min(room, size)
	}
	in := bufio.NewReaderSize(r, int(room))
	head, err := in.Peek(8)
	if err != nil && err != io.EOF {
		return nil, err
	}
	got := Codec(head)
	if got == "xz" || got == "bzip2" {
		return nil, fmt.Errorf("%w: unsupported compression %s", fault.ErrInvalid, got)
	}
	if got != want && len(head) > 0 {
		return nil, fmt.Errorf("%w: the layer's content is %s, which does not match media type %.80q", fault.ErrInvalid,
			orPlain(got), mediaType)
	}
	switch want {
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, codecError(err)
		}
		return &wholeStream{r: z, below: in, close: z.Close}, nil
	case "zstd":
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(limit.MaxZstdWindow),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, codecError(err)
		}
		return &wholeStream{r: z, below: in, close: func() error { z.Close(); return nil }}, nil
	}
	return &wholeStream{r: in, below: in, close: func() error { return nil }}, nil
}

func orPlain(codec string) string {
	if codec == "" {
		return "not compressed"
	}
	return codec
}

// codecOf returns the codec of a media type.
func codecOf(mediaType string) (string, error) {
	switch mediaType {
	case v1.MediaTypeImageLayerGzip, manifest.DockerV2Schema2LayerMediaType:
		return "gzip", nil
	case v1.MediaTypeImageLayerZstd, "application/vnd.docker.image.rootfs.diff.tar.zstd":
		return "zstd", nil
	case v1.MediaTypeImageLayer, manifest.DockerV2SchemaLayerMediaTypeUncompressed:
		return "", nil
	}
	if strings.HasSuffix(mediaType, "+xz") || strings.HasSuffix(mediaType, "+bzip2") {
		return "", fmt.Errorf("%w: unsupported compression: media type %.80q", fault.ErrInvalid, mediaType)
	}
	return "", fmt.Errorf("%w: unknown media type %.80q of a layer", fault.ErrInvalid, mediaType)
}

// wholeStream reads the compressed stream to its end after the codec has ended, so that its digest covers all bytes.
type wholeStream struct {
	r     io.Reader
	below io.Reader
	close func() error
}

func (w *wholeStream) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err == io.EOF {
		if _, derr := io.Copy(io.Discard, w.below); derr != nil {
			return n, derr
		}
		return n, io.EOF
	}
	if err != nil {
		return n, codecError(err)
	}
	return n, nil
}

func (w *wholeStream) Close() error { return w.close() }

// codecError gives the errors of the codecs their classes.
func codecError(err error) error {
	switch {
	case isSettled(err):
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("%w: zstd window larger than %d bytes", fault.ErrLimit, limit.MaxZstdWindow)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: unexpected end of the compressed layer", fault.ErrIntegrity)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrCRCMismatch),
		errors.Is(err, zstd.ErrMagicMismatch):
		return fmt.Errorf("%w: the compressed layer is damaged: %w", fault.ErrIntegrity, err)
	}
	return err
}

// endReader checks that an archive has a proper end and only zeros after it.
type endReader struct {
	r    io.Reader
	tail [1024]byte // the last bytes that were read
	head [8]byte    // the first ones
	n    int64
}

// archiveError is [ArchiveError]; of what is no archive but another compressed stream it says so.
func (e *endReader) archiveError(err error) error {
	if e.n <= 512 && Codec(e.head[:]) != "" { // its first header is none
		return fmt.Errorf("%w: compressed twice: %s inside", fault.ErrInvalid, Codec(e.head[:]))
	}
	return ArchiveError(err)
}

func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.note(p[:n])
	return n, err
}

func (e *endReader) note(p []byte) {
	if e.n < int64(len(e.head)) {
		copy(e.head[e.n:], p)
	}
	e.n += int64(len(p))
	if len(p) >= len(e.tail) {
		copy(e.tail[:], p[len(p)-len(e.tail):])
		return
	}
	copy(e.tail[:], e.tail[len(p):])
	copy(e.tail[len(e.tail)-len(p):], p)
}

// finish reads to the end of the stream. The last bytes that the tar reader has read must be the two zero blocks that
// end an archive.
func (e *endReader) finish() error {
	if e.n < int64(len(e.tail)) || e.tail != [1024]byte{} {
		return fmt.Errorf("%w: missing end of archive", fault.ErrInvalid)
	}
	buf := make([]byte, 4<<10)
	for {
		n, err := e.r.Read(buf)
		if bytes.ContainsFunc(buf[:n], func(r rune) bool { return r != 0 }) {
			return fmt.Errorf("%w: data after end of archive", fault.ErrInvalid)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
