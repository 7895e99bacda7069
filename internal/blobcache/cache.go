// Package blobcache keeps blobs of registries and layers by their digest in a directory, for all processes of one user, and
// beside them notes: small values by key.
//
// Nothing in the directory is trusted: what is read has been checked against its digest. A cache that cannot be used is one
// that is always empty.
package blobcache

import (
	"bytes"
	"cmp"
	"crypto/sha256"
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

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// What is in a blob cache's directory, besides the tag file.
const (
	cacheBlobs   = "sha256"  // sha256/ab/<hex>, the blobs
	cachePartial = "partial" // what is being written
	cacheAccount = "account" // one byte for each cacheUnit that was stored since the last pruning
)

const (
	cacheUnit = 4 << 10 // blobs are counted in blocks of the file system
	// Smaller blobs are read as a whole, and written to the disk only when they are complete.
	cacheInMemory   = 1 << 20
	cacheWriteAfter = 64 << 10
	// An entry that is used is stamped, but not over and over.
	cacheStampEvery = time.Minute

	defaultCacheBytes = 2 << 30
)

// Options configure a blob cache. Zero values are defaults.
type Options struct {
	// MaxBytes is how much the cache may take on the disk, about; 2 GiB by default. It is overrun by an eighth at most, and
	// by what other processes store while one is pruning.
	MaxBytes int64
	// MaxBlob is the size of the largest blob that is kept; half of MaxBytes by default.
	MaxBlob int64
	// Warn is called, once at most, with the reason why blobs cannot be stored any more. It may be called by any goroutine
	// that uses the cache.
	Warn func(error)
	// Now is the clock by which entries are stamped when they are used; time.Now by default.
	Now func() time.Time
}

// Cache keeps blobs by their digest in a directory, for all processes of one user. Whatever is wrong with the directory, a
// blob is then fetched again and at worst not kept. What is read has been checked against its digest, so that entries need
// not be synced to the disk either.
//
// A nil *Cache is a cache that is always empty. Methods are safe for concurrent use, also by many processes, and no
// reader waits for a writer: entries appear by a rename, and one that is evicted while it is read stays readable.
type Cache struct {
	dir string
	o   Options

	mu      sync.Mutex
	root    *os.Root // nil until the directory exists and is used
	account *os.File // nil until something is stored

	off  atomic.Bool // nothing is stored any more
	warn sync.Once
}

// DefaultDir is where a user's blobs are kept: $XDG_CACHE_HOME/bindery/blobs, else $HOME/.cache/bindery/blobs. It
// is false if the environment has neither, as absolute paths (XDG base directory specification).
func DefaultDir(getenv func(string) string) (string, bool) {
	if base := getenv("XDG_CACHE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "bindery", "blobs"), true
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "bindery", "blobs"), true
	}
	return "", false
}

// Open opens the cache in a directory, which is made when the first blob is stored. It fails if what is there
// cannot be a cache of this user: a symbolic link, another user's directory, a directory with other things in it. Who
// can do without a cache warns and goes on with nil.
func Open(dir string, o Options) (*Cache, error) {
	if o.MaxBytes < 0 || o.MaxBlob < 0 {
		return nil, fmt.Errorf("blob cache: a negative size")
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultCacheBytes)
	if o.MaxBlob == 0 {
		o.MaxBlob = o.MaxBytes / 2
	}
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

// Dir is the cache's directory; empty for a nil cache.
func (c *Cache) Dir() string {
	if c == nil {
		return ""
	}
	return c.dir
}

// MaxBytes is the bound of the cache; 0 for a nil cache.
func (c *Cache) MaxBytes() int64 {
	if c == nil {
		return 0
	}
	return c.o.MaxBytes
}

// Close gives the cache's descriptors back. What it has opened stays readable, nothing more is found or stored.
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

// blobEntry is the path of a blob in the cache.
func blobEntry(d digest.Digest) string {
	hex := d.Encoded()
	return path.Join(cacheBlobs, hex[:2], hex)
}

// Open finds a blob. A size below zero is not known. What is returned has been checked, from the first byte to the last,
// so that a damaged entry is no more than one that is missing; where the file changes while it is read, the reader fails
// with [fault.ErrIntegrity]. An entry with another size than announced is left to the next [Cache.Tee]: it may be the
// announcement that is wrong.
func (c *Cache) Open(d digest.Digest, size int64) (io.ReadCloser, bool) {
	f, info, ok := c.find(d, size)
	if !ok {
		return nil, false
	}
	r, err := checked(f, d, info.Size())
	if err != nil {
		f.Close()
		c.damaged(d, err)
		return nil, false
	}
	c.stamp(d, info)
	return r, true
}

// find opens a blob that has not been checked.
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
			_ = root.Remove(name) // it is ours: somebody has taken away its permissions
		}
		return nil, nil, false
	}
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, nil, false
	}
	return f, info, true
}

// damaged removes an entry that is not what it is called.
func (c *Cache) damaged(d digest.Digest, err error) {
	if !errors.Is(err, fault.ErrIntegrity) {
		return
	}
	if root, err := c.open(); err == nil {
		_ = root.Remove(blobEntry(d))
	}
}

// stamp notes that an entry has been used.
func (c *Cache) stamp(d digest.Digest, info fs.FileInfo) {
	now := c.o.Now()
	if now.Sub(info.ModTime()).Abs() <= cacheStampEvery {
		return
	}
	if root, err := c.open(); err == nil {
		_ = root.Chtimes(blobEntry(d), now, now) // at worst it is evicted too early
	}
}

// checked reads an entry to its end and returns a reader of what it has read. It owns the file if it succeeds.
func checked(f *os.File, d digest.Digest, size int64) (io.ReadCloser, error) {
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
	h := sha256.New()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{f}, make([]byte, 128<<10)); err != nil {
		return nil, err
	}
	if digest.NewDigest(digest.SHA256, h) != d {
		return nil, fault.ErrIntegrity
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{verify.NewReader(f, d, size), f}, nil
}
