package blobcache

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
)

// CopyTo copies a blob of a known size to a file. The file appears complete, verified, synced, and readable by all
// users. CopyTo reports false if the cache does not have the blob or the file cannot be written. It reads the blob
// once; [Cache.Open] reads a large blob twice, as it verifies it first.
func (c *Cache) CopyTo(ctx context.Context, d digest.Digest, size int64, path string) bool {
	f, info, ok := c.find(d, size)
	if !ok {
		return false
	}
	defer f.Close()
	if err := copyChecked(ctx, f, d, path); err != nil {
		c.damaged(d, err)
		return false
	}
	c.stamp(d, info)
	return true
}

// copyChecked copies to a temporary file and renames it once it is verified.
func copyChecked(ctx context.Context, from io.Reader, d digest.Digest, path string) (err error) {
	to, err := os.CreateTemp(filepath.Dir(path), "blob-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = to.Close()
			_ = os.Remove(to.Name())
		}
	}()
	h := sha256.New()
	w := struct{ io.Writer }{io.MultiWriter(h, to)}
	if _, err = io.CopyBuffer(w, struct{ io.Reader }{ctxio.Reader{Ctx: ctx, R: from}},
		make([]byte, 128<<10)); err != nil {
		return err
	}
	if digest.NewDigest(digest.SHA256, h) != d {
		return fault.ErrIntegrity
	}
	if err = errors.Join(to.Sync(), to.Close()); err != nil {
		return err
	}
	if err = os.Chmod(to.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(to.Name(), path)
}
