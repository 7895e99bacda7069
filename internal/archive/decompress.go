package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// magic has the first bytes of compressed streams, by codec.
var magic = map[string][]byte{
	"gzip":  {0x1f, 0x8b},
	"zstd":  {0x28, 0xb5, 0x2f, 0xfd},
	"xz":    {0xfd, '7', 'z', 'X', 'Z', 0},
	"bzip2": {'B', 'Z', 'h'},
}

// Codec returns the codec of a compressed stream by its first bytes, empty if it is not compressed.
func Codec(head []byte) string {
	for name, begin := range magic {
		// The name of an archive's first file may begin as a bzip2 stream does, but not go on so.
		if bytes.HasPrefix(head, begin) && (name != "bzip2" || len(head) > 6 && string(head[4:7]) == "1AY") {
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
			cmp.Or(got, "not compressed"), mediaType)
	}
	switch want {
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, codecError(err)
		}
		return &wholeStream{z, in}, nil
	case "zstd":
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(limit.MaxZstdWindow),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, codecError(err)
		}
		return &wholeStream{z.IOReadCloser(), in}, nil
	}
	return &wholeStream{io.NopCloser(in), in}, nil
}

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
	io.ReadCloser
	below io.Reader
}

func (w *wholeStream) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
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

// bounded enforces the limits on decompressed bytes.
type bounded struct {
	r          io.Reader
	limits     limit.Limits
	compressed int64
	n          int64
	all        *int64
}

// Bound returns a reader that enforces the limits on a decompressed archive; compressed is its size before that in
// bytes. What is read is added to all, the bytes of all archives together that the limits are for.
func Bound(r io.Reader, limits limit.Limits, compressed int64, all *int64) io.Reader {
	return &bounded{r: r, limits: limits, compressed: compressed, all: all}
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	*b.all += int64(n)
	if *b.all > b.limits.Uncompressed {
		return 0, limit.Errorf(limit.Uncompressed, b.limits.Uncompressed, "more than %d bytes uncompressed",
			b.limits.Uncompressed)
	}
	if b.n > limit.RatioBeyond && b.n/b.limits.Ratio > b.compressed {
		return 0, limit.Errorf(limit.Ratio, b.limits.Ratio, "uncompressed more than %d times as long as compressed",
			b.limits.Ratio)
	}
	return n, err
}

// isSettled tells whether an error has a class, or is about the machine.
func isSettled(err error) bool {
	for _, class := range []error{fault.ErrIntegrity, fault.ErrLimit, fault.ErrInvalid, fault.ErrRegistry,
		context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, class) {
			return true
		}
	}
	var file *fs.PathError
	return errors.As(err, &file)
}

// Error gives an error of reading an archive a class, unless it already has one or is about the machine:
// [fault.ErrIntegrity] for an archive that was cut off, else [fault.ErrInvalid].
func Error(err error) error {
	switch {
	case isSettled(err):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: unexpected end of the archive", fault.ErrIntegrity)
	case errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("%w: this is no tar archive, or a damaged one: copy it again from where it comes from",
			fault.ErrInvalid)
	}
	return fmt.Errorf("%w: archive: %w", fault.ErrInvalid, err)
}
