package opmformat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// ReadDigest reads the digest in the directory of a cache, which is text.
func ReadDigest(cache fs.FS) (string, error) {
	text, err := ReadSmall(cache, DigestName, 1024)
	return strings.TrimSpace(string(text)), err
}

// ReadSmall reads a regular file that must not be longer than limit bytes.
func ReadSmall(fsys fs.FS, name string, limit int64) ([]byte, error) {
	return AppendSmall(nil, fsys, name, limit)
}

// AppendSmall is [ReadSmall] that appends to dst, for whoever reads many files: what it grows by is what the file has.
func AppendSmall(dst []byte, fsys fs.FS, name string, limit int64) (_ []byte, err error) {
	f, size, err := OpenRegular(fsys, name)
	if err != nil {
		return dst, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	before := len(dst)
	// One byte more, so that the end is seen without growing.
	dst = slices.Grow(dst, int(max(min(size, limit), 0))+1)
	for r := io.LimitReader(f, limit+1); ; {
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case int64(len(dst)-before) > limit:
			return dst, fmt.Errorf("%s has more than %d bytes", name, limit)
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, err
		case len(dst) == cap(dst):
			dst = slices.Grow(dst, bytes.MinRead)
		}
	}
}

// OpenRegular opens a file that must be a regular one and returns its size.
func OpenRegular(fsys fs.FS, name string) (fs.File, int64, error) {
	// Before it is opened: opening a FIFO waits for its writer.
	info, err := fs.Stat(fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// WriteCatalog writes the part of a catalog in the digest of the format pogreb.v1: all blobs in the order of a walk, each in
// canonical form and followed by a newline.
func WriteCatalog(ctx context.Context, w io.Writer, catalog fs.FS) error {
	var text []byte
	return declcfg.Walk(ctx, catalog, declcfg.LoadOptions{}, func(m *declcfg.Meta) (err error) {
		if text, err = AppendNumbers(text[:0], m.Blob); err != nil {
			return fmt.Errorf("%s: %w", m.Pos, err)
		}
		_, err = w.Write(append(text, '\n'))
		return err
	})
}
