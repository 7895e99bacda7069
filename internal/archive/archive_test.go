package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// Only a component ".." leads out of an image, and no path is longer or deeper than a file can be.
func TestCleanPath(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		err  error
	}{
		"/configs":                {"configs", nil},
		"configs/":                {"configs", nil},
		"/":                       {"", nil},
		".":                       {"", nil},
		"/configs..v2":            {"configs..v2", nil},
		"/..configs/a..":          {"..configs/a..", nil},
		"/...":                    {"...", nil},
		"/configs/../etc":         {"", fault.ErrInvalid},
		"..":                      {"", fault.ErrInvalid},
		"/a\nb":                   {"", fault.ErrInvalid},
		strings.Repeat("/a", 256): {strings.Repeat("/a", 256)[1:], nil},
		strings.Repeat("/a", 257): {"", fault.ErrLimit},
		strings.Repeat("/", 4096): {"", fault.ErrLimit},
		strings.Repeat("a", 4096): {strings.Repeat("a", 4096), nil},
		strings.Repeat("a", 4097): {"", fault.ErrLimit},
	} {
		got, err := CleanPath(name)
		if got != c.want || !errors.Is(err, c.err) || len(fmt.Sprint(err)) > 400 {
			t.Errorf("%.100q: got %.100q, %v", name, got, err)
		}
	}
}

// The name of an entry is clean and leads nowhere else.
func TestEntryName(t *testing.T) {
	deep := strings.Repeat("a/", limit.MaxDepth)
	for name, c := range map[string]struct {
		want string
		err  error
	}{
		"./":       {".", nil},
		"./a//b/":  {"a/b", nil},
		deep:       {deep[:len(deep)-1], nil},
		"/a":       {"", fault.ErrInvalid},
		"a/../b":   {"", fault.ErrInvalid},
		"a\xff":    {"", fault.ErrInvalid},
		"a\n":      {"", fault.ErrInvalid},
		deep + "a": {"", fault.ErrLimit},
		strings.Repeat("a", limit.MaxComponent+1): {"", fault.ErrLimit},
		strings.Repeat("a/", limit.MaxPath):       {"", fault.ErrLimit},
	} {
		got, err := EntryName(&tar.Header{Name: name})
		if got != c.want || !errors.Is(err, c.err) || len(fmt.Sprint(err)) > 500 {
			t.Errorf("%.100q: got %.100q, %v", name, got, err)
		}
	}
	for want, h := range map[bool]tar.Header{true: {PAXRecords: map[string]string{"GNU.sparse.major": "1"}},
		false: {PAXRecords: map[string]string{"comment": "GNU.sparse."}}} {
		if IsSparse(&h) != want {
			t.Errorf("%+v", h)
		}
	}
}

// The codec is that of the content, and must be that of the media type.
func TestDecompress(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zstded := encoder.EncodeAll(make([]byte, 1<<20), nil)
	damaged := bytes.Clone(zstded)
	damaged[len(damaged)-1] ^= 1 // in the checksum
	for name, c := range map[string]struct {
		content   []byte
		mediaType string
		want      error
	}{
		"gzip":               {packed.Bytes(), v1.MediaTypeImageLayerGzip, nil},
		"zstd":               {zstded, v1.MediaTypeImageLayerZstd, nil},
		"plain":              {make([]byte, 1<<20), v1.MediaTypeImageLayer, nil},
		"bytes after":        {append(bytes.Clone(packed.Bytes()), "x"...), v1.MediaTypeImageLayerGzip, fault.ErrIntegrity},
		"cut off":            {packed.Bytes()[:100], v1.MediaTypeImageLayerGzip, fault.ErrIntegrity},
		"no gzip":            {append([]byte{0x1f, 0x8b}, make([]byte, 8)...), v1.MediaTypeImageLayerGzip, fault.ErrIntegrity},
		"damaged":            {damaged, v1.MediaTypeImageLayerZstd, fault.ErrIntegrity},
		"gzip, not zstd":     {packed.Bytes(), v1.MediaTypeImageLayerZstd, fault.ErrInvalid},
		"plain, not gzip":    {make([]byte, 10), v1.MediaTypeImageLayerGzip, fault.ErrInvalid},
		"xz":                 {[]byte("\xfd7zXZ\x00  "), v1.MediaTypeImageLayer, fault.ErrInvalid},
		"bzip2":              {[]byte("BZh91AY&"), v1.MediaTypeImageLayer, fault.ErrInvalid},
		"no media type":      {nil, "text/plain", fault.ErrInvalid},
		"media type with xz": {nil, v1.MediaTypeImageLayer + "+xz", fault.ErrInvalid},
	} {
		r, err := Decompress(bytes.NewReader(c.content), c.mediaType, -1)
		var n int64
		if err == nil {
			n, err = io.Copy(io.Discard, r)
			err = errors.Join(err, r.Close())
		}
		if !errors.Is(err, c.want) || c.want == nil && (err != nil || n != 1<<20) {
			t.Errorf("%s: %d bytes, %v instead of %v", name, n, err, c.want)
		}
	}
}

// Errors distinguish what is no archive from an archive that is compressed, cut off, or cannot be read.
func TestErrors(t *testing.T) {
	for text, plain := range map[string]bool{"\x1f\x8b": false, "BZh91AY": false, "BZhx": true, "": true} {
		if err := CheckPlain([]byte(text)); (err == nil) != plain || err != nil && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	file := &fs.PathError{Op: "read", Path: "x", Err: fs.ErrPermission}
	for err, want := range map[error]error{tar.ErrHeader: fault.ErrInvalid, errors.New("else"): fault.ErrInvalid,
		io.ErrUnexpectedEOF: fault.ErrIntegrity, context.Canceled: context.Canceled, file: file} {
		if got := Error(err); !errors.Is(got, want) || want != fault.ErrInvalid && errors.Is(got, fault.ErrInvalid) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// The limits are for all archives together, and the ratio for each.
func TestBound(t *testing.T) {
	limits := limit.Limits{Uncompressed: 3 << 20, Ratio: 1 << 30}
	var all int64
	for n, want := range []error{nil, nil, fault.ErrLimit} {
		_, err := io.Copy(io.Discard, Bound(bytes.NewReader(make([]byte, 1<<20+1<<19)), limits, 1, &all))
		if !errors.Is(err, want) {
			t.Errorf("archive %d: %v, %d bytes", n, err, all)
		}
	}
	limits = limit.Limits{Uncompressed: 1 << 40, Ratio: 2}
	content := make([]byte, limit.RatioBeyond+1<<20)
	for compressed, want := range map[int64]error{1: fault.ErrLimit, int64(len(content)): nil} {
		_, err := io.Copy(io.Discard, Bound(bytes.NewReader(content), limits, compressed, new(int64)))
		if !errors.Is(err, want) {
			t.Errorf("compressed to %d bytes: %v", compressed, err)
		}
	}
}

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
			r, err := Decompress(bytes.NewReader(nil), v1.MediaTypeImageLayer, c.size)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.(*wholeStream).below.(*bufio.Reader).Size(); got != c.want {
				t.Errorf("room for %d bytes, want %d", got, c.want)
			}
		})
	}
}
