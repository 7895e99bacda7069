package opmcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

// readDigest reads the digest, a text file, in the directory of a cache.
func readDigest(cache fs.FS) (string, error) {
	text, err := readSmall(cache, opmformat.DigestName, 1024)
	return strings.TrimSpace(string(text)), err
}

// readSmall reads a regular file of at most limit bytes.
func readSmall(fsys fs.FS, name string, limit int64) (_ []byte, err error) {
	// Stat before opening: opening a FIFO waits for its writer.
	info, err := fs.Stat(fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return text, err
}

// writeCatalog writes the catalog's part of the digest input of the format pogreb.v1: all blobs in the order of a walk,
// in canonical form, each followed by a newline.
func writeCatalog(ctx context.Context, w io.Writer, catalog fs.FS) error {
	var text []byte
	return declcfg.Walk(ctx, catalog, declcfg.LoadOptions{}, func(m *declcfg.Meta) (err error) {
		if text, err = appendNumbers(text[:0], m.Blob); err != nil {
			return fmt.Errorf("%s: %w", m.Pos, err)
		}
		_, err = w.Write(append(text, '\n'))
		return err
	})
}
