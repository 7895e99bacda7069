// Package blobcache stores blobs of registries and layers by digest in a directory that all processes of one user
// share. Next to them it stores hints and notes: small values by key.
//
// Nothing in the directory is trusted: blobs are verified against their digest when they are read, notes are sealed with
// a key that is elsewhere, and hints decide nothing. An unusable cache behaves like an empty one.
package blobcache

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// The entries of a cache directory, besides the tag file.
const (
	cacheBlobs   = "sha256"  // sha256/ab/HEX, the blobs
	cachePartial = "partial" // what is being written
	cacheAccount = "account" // one byte for each cacheUnit that was stored since the last pruning
)

const (
	cacheUnit = 4 << 10 // sizes are counted in blocks of the file system
	// Blobs up to this size are held in memory and written to disk only when they are complete.
	cacheInMemory   = 1 << 20
	cacheWriteAfter = 64 << 10
	// The time stamp of a used entry is updated at most this often.
	cacheStampEvery = time.Minute

	defaultCacheBytes = 2 << 30
)

// Options configure a blob cache. Zero values are defaults.
type Options struct {
	// MaxBytes is the approximate disk space of the cache; 2 GiB by default. It is exceeded by at most an eighth, plus
	// what other processes store while one is pruning.
	MaxBytes int64
	// MaxBlob is the size of the largest blob that is stored; half of MaxBytes by default.
	MaxBlob int64
	// Warn is called at most once, with the reason why blobs can no longer be stored. Any goroutine that uses the cache
	// may call it.
	Warn func(error)
	// Now is the clock for the time stamps of entries; time.Now by default.
	Now func() time.Time
}

// Cache stores blobs by digest in a directory that all processes of one user share. Whatever happens to the directory,
// the worst case is that a blob is fetched again and not stored. Blobs are verified against their digest when they are
// read, so entries need not be synced to disk.
//
// A nil *Cache is an empty cache. Methods are safe for concurrent use, also by several processes. Readers never wait
// for writers: entries appear by rename, and an entry evicted while it is read stays readable.
type Cache struct {
	dir string
	o   Options

	mu      sync.Mutex
	root    *os.Root // nil until the directory exists and is used
	account *os.File // nil until something is stored

	off atomic.Bool // nothing more is stored
}

// DefaultDir returns the directory of a user's blobs: $XDG_CACHE_HOME/bindery/blobs, else $HOME/.cache/bindery/blobs.
// Where the directory bindery is another user's, as on a volume that many use, it is bindery-UID instead. DefaultDir
// returns false if neither variable is an absolute path (XDG base directory specification).
func DefaultDir(getenv func(string) string) (string, bool) {
	base := getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(base) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", false
		}
		base = filepath.Join(home, ".cache")
	}
	own := filepath.Join(base, "bindery")
	if info, err := os.Lstat(own); err == nil && info.IsDir() && !ownedBy(info, os.Geteuid()) {
		own = fmt.Sprintf("%s-%d", own, os.Geteuid())
	}
	return filepath.Join(own, "blobs"), true
}

// Open opens the cache in a directory, which is created when the first blob is stored. It fails if the path cannot be a
// cache of this user: a symbolic link, another user's directory, a directory with other content. Callers that can work
// without a cache report the error as a warning and continue with nil.
func Open(dir string, o Options) (*Cache, error) {
	if o.MaxBytes < 0 || o.MaxBlob < 0 {
		return nil, fmt.Errorf("blob cache: a negative size")
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultCacheBytes)
	o.MaxBlob = cmp.Or(o.MaxBlob, o.MaxBytes/2)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("blob cache: %w", err)
	}
	c := &Cache{dir: dir, o: o}
	if _, err := c.open(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob cache: %w", err)
	}
	return c, nil
}

// Dir returns the cache's directory; empty for a nil cache.
func (c *Cache) Dir() string {
	if c == nil {
		return ""
	}
	return c.dir
}

// MaxBytes returns the maximum size of the cache; 0 for a nil cache.
func (c *Cache) MaxBytes() int64 {
	if c == nil {
		return 0
	}
	return c.o.MaxBytes
}

// Close closes the cache's descriptors. Blobs that it opened stay readable; nothing more is found or stored.
func (c *Cache) Close() error {
	if c == nil {
		return nil
	}
	c.off.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.root != nil {
		err = c.root.Close()
	}
	if c.account != nil {
		err = errors.Join(err, c.account.Close())
		c.account = nil
	}
	return err
}

func blobEntry(d digest.Digest) string {
	hex := d.Encoded()
	return path.Join(cacheBlobs, hex[:2], hex)
}

// Open returns a blob of the cache. A negative size means unknown. The whole blob is verified before Open returns, so a
// damaged entry counts as missing, as does one that is not read when ctx ends; if the file changes while it is read,
// the reader fails with [fault.ErrIntegrity]. An entry whose size differs from the expected one is left to the next
// [Cache.Tee]: the expected size may be the wrong one.
func (c *Cache) Open(ctx context.Context, d digest.Digest, size int64) (io.ReadCloser, bool) {
	f, info, ok := c.find(d, size)
	if !ok {
		return nil, false
	}
	r, err := checked(ctx, f, d, info.Size())
	if err != nil {
		f.Close()
		c.damaged(d, err)
		return nil, false
	}
	c.stamp(d, info)
	return r, true
}

// find opens a blob without verifying it.
func (c *Cache) find(d digest.Digest, size int64) (*os.File, fs.FileInfo, bool) {
	if c == nil || verify.Digest(d) != nil {
		return nil, nil, false
	}
	root, err := c.open()
	if err != nil {
		return nil, nil, false
	}
	name := blobEntry(d)
	info, err := root.Lstat(name)
	if err != nil || size >= 0 && info.Mode().IsRegular() && info.Size() != size {
		return nil, nil, false
	}
	if !info.Mode().IsRegular() || info.Size() > c.o.MaxBlob {
		_ = root.RemoveAll(name)
		return nil, nil, false
	}
	f, err := openQuickly(root, name)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			_ = root.Remove(name) // this user's file without read permission
		}
		return nil, nil, false
	}
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, nil, false
	}
	return f, info, true
}

// damaged removes an entry that does not match its digest.
func (c *Cache) damaged(d digest.Digest, err error) {
	if errors.Is(err, fault.ErrIntegrity) {
		c.remove(d)
	}
}

func (c *Cache) remove(d digest.Digest) {
	if root, err := c.open(); err == nil {
		_ = root.RemoveAll(blobEntry(d))
	}
}

// stamp records that an entry was used.
func (c *Cache) stamp(d digest.Digest, info fs.FileInfo) {
	now := c.o.Now()
	if now.Sub(info.ModTime()).Abs() <= cacheStampEvery {
		return
	}
	if root, err := c.open(); err == nil {
		_ = root.Chtimes(blobEntry(d), now, now) // if this fails, the entry is evicted too early at worst
	}
}

// checked verifies an entry and returns a reader of the verified content. The reader owns the file if there is no
// error.
func checked(ctx context.Context, f *os.File, d digest.Digest, size int64) (io.ReadCloser, error) {
	if size <= cacheInMemory {
		text := make([]byte, size)
		if _, err := io.ReadFull(f, text); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if digest.FromBytes(text) != d {
			return nil, fault.ErrIntegrity
		}
		_ = f.Close()
		return io.NopCloser(bytes.NewReader(text)), nil
	}
	if _, err := ctxio.Copy(io.Discard, verified(ctx, f, d)); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return verify.Body(ctx, f, d, size), nil
}

// verified reads an entry, and fails at its end unless it matches its digest.
func verified(ctx context.Context, f *os.File, d digest.Digest) io.Reader {
	return verify.NewReader(ctxio.Reader{Ctx: ctx, R: f}, d, -1)
}

// CopyTo copies a blob of a known size to a file. The file appears complete, verified, synced, and readable by all
// users. CopyTo reports false if the cache does not have the blob or the file cannot be written. It reads the blob
// once; [Cache.Open] reads a large blob twice, as it verifies it first.
func (c *Cache) CopyTo(ctx context.Context, d digest.Digest, size int64, path string) bool {
	f, info, ok := c.find(d, size)
	if !ok {
		return false
	}
	defer f.Close()
	if err := atomicfs.WriteBlob(filepath.Dir(path), path, verified(ctx, f, d)); err != nil {
		c.damaged(d, err)
		return false
	}
	c.stamp(d, info)
	return true
}
