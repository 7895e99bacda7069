package blobcache

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/filelock"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Tee returns a reader of r that stores the blob in the cache when it is read to its end (or, if the size is known, to
// its last byte) and matches digest and size. A negative size means unknown. Reading never fails or waits because of
// the cache: if the disk is full or not writable, storing ends. The reader must be closed, which closes r.
func (c *Cache) Tee(d digest.Digest, size int64, r io.ReadCloser) io.ReadCloser {
	if c == nil || c.off.Load() || verify.Digest(d) != nil || size > c.o.MaxBlob {
		return r
	}
	s := &storer{c: c, r: r, want: d, size: size, h: sha256.New()}
	if size > 0 && size <= cacheWriteAfter {
		s.buf = make([]byte, 0, size)
	}
	return s
}

// fail ends storing for good: a full or read-only disk would fail for the next blob too.
func (c *Cache) fail(err error) {
	if c.off.Swap(true) {
		return
	}
	c.o.Warn(fmt.Errorf("blob cache %s: %w", c.dir, err))
}

// storer is one blob being stored.
type storer struct {
	c    *Cache
	r    io.ReadCloser
	want digest.Digest
	size int64

	h    hash.Hash
	n    int64
	done bool // stored or given up
	buf  []byte
	root *os.Root
	file *os.File
	name string // of the temporary file in the cache
}

// Read reads from the blob's source.
func (s *storer) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if s.done {
		return n, err
	}
	s.takeBytes(p[:n])
	switch {
	case err == io.EOF:
		s.finish()
	case err != nil:
		s.giveUp()
	}
	return n, err
}

// Close closes the source. A blob that was not read to its end is not stored.
func (s *storer) Close() error {
	if !s.done {
		if s.n == s.size {
			s.finish()
		} else {
			s.giveUp()
		}
	}
	return s.r.Close()
}

func (s *storer) takeBytes(p []byte) {
	s.n += int64(len(p))
	if s.size >= 0 && s.n > s.size || s.n > s.c.o.MaxBlob || s.c.off.Load() {
		s.giveUp()
		return
	}
	s.h.Write(p)
	if s.file == nil && len(s.buf)+len(p) <= cacheWriteAfter {
		s.buf = append(s.buf, p...)
		return
	}
	if err := s.write(p); err != nil {
		s.giveUp()
		s.c.fail(err)
	}
}

// write writes p to the file, after the bytes that were held in memory.
func (s *storer) write(p []byte) error {
	if s.file == nil {
		if err := s.createFile(); err != nil {
			return err
		}
		if _, err := s.file.Write(s.buf); err != nil {
			return err
		}
		s.buf = nil
	}
	if len(p) == 0 {
		return nil
	}
	_, err := s.file.Write(p)
	return err
}

func (s *storer) createFile() (err error) {
	if s.root, err = s.c.create(); err != nil {
		return err
	}
	s.name = path.Join(cachePartial, s.want.Encoded()+"."+rand.Text())
	open := func() error {
		s.file, err = s.root.OpenFile(s.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return err
	}
	if open() != nil {
		if err = makeDir(s.root, cachePartial); err == nil {
			err = open()
		}
	}
	if err == nil {
		_, err = filelock.Take(s.file) // held until it is closed: see abandoned
	}
	return err
}

// giveUp removes the temporary file.
func (s *storer) giveUp() {
	s.done = true
	s.buf = nil
	if s.file == nil {
		return
	}
	// The name is removed before the file is closed: a closed file with a name would count as abandoned.
	_ = s.root.Remove(s.name)
	_ = s.file.Close()
	s.file = nil
}

// finish renames the blob to its place.
func (s *storer) finish() {
	if s.size >= 0 && s.n != s.size || digest.NewDigest(digest.SHA256, s.h) != s.want {
		s.giveUp()
		return
	}
	if s.file == nil {
		// The manifest of a tag is fetched every time although the cache has it. Verifying the entry costs a fraction
		// of writing it again.
		if r, ok := s.c.Open(context.Background(), s.want, s.n); ok {
			_ = r.Close()
			s.giveUp()
			return
		}
	}
	s.replaceBlob()
}

// replaceBlob puts the blob in its place, where another one may be.
func (s *storer) replaceBlob() {
	if err := s.moveToPlace(); err != nil {
		s.giveUp()
		s.c.fail(err)
		return
	}
	s.done = true
	_ = s.file.Close()
	s.c.pruneIfDue()
}

func (s *storer) moveToPlace() error {
	if err := s.write(nil); err != nil {
		return err
	}
	// The blob is counted before the rename: a process killed between the two has then counted too much and not too
	// little.
	if err := s.c.count(s.n); err != nil {
		return err
	}
	name := blobEntry(s.want)
	err := s.root.Rename(s.name, name)
	for attempt := 0; err != nil && attempt < 3; attempt++ {
		if err := makeDir(s.root, path.Dir(name)); err != nil {
			return err
		}
		if info, err := s.root.Lstat(name); err == nil && info.IsDir() {
			_ = s.root.RemoveAll(name)
		}
		err = s.root.Rename(s.name, name)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil // in the second case another process swept it before it was locked
	}
	if info, serr := s.root.Lstat(name); serr == nil && info.Mode().IsRegular() && info.Size() == s.n {
		// On systems that cannot replace an open file, another process is reading the same blob.
		return s.root.Remove(s.name)
	}
	return err
}

// count adds a blob to the account.
func (c *Cache) count(size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.account == nil {
		return fs.ErrClosed
	}
	_, err := c.account.Write(slices.Repeat([]byte{'.'}, int(blocks(size))))
	return err
}

// blocks returns the disk space of a file in units of the account.
func blocks(size int64) int64 { return max(1, (size+cacheUnit-1)/cacheUnit) }
