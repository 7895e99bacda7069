package blobcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// Info describes the content of a cache.
type Info struct {
	Dir      string
	Blobs    int
	Bytes    int64 // on disk, in blocks of 4 KiB
	MaxBytes int64
	// Oldest and Newest are the first and last use of a blob, to the minute; zero if there are none.
	Oldest, Newest time.Time
}

// Pruned is the result of [Cache.Prune].
type Pruned struct {
	Blobs int
	Bytes int64 // on disk
	// What remains.
	LeftBlobs int
	LeftBytes int64
}

// PruneOptions say how much to keep.
type PruneOptions struct {
	// MaxBytes is how much may remain on disk; 0 removes everything.
	MaxBytes int64
	// DryRun only reports what would be removed.
	DryRun bool
}

// cacheEntry is one blob in the cache.
type cacheEntry struct {
	name  string
	bytes int64 // on disk
	used  time.Time
}

// Info counts the blobs. A cache whose directory does not exist is empty.
func (c *Cache) Info() (Info, error) {
	if c == nil {
		return Info{}, nil
	}
	info := Info{Dir: c.dir, MaxBytes: c.o.MaxBytes}
	root, err := c.open()
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil
	}
	if err != nil {
		return info, fmt.Errorf("blob cache: %w", err)
	}
	entries, _, err := listCache(root)
	if err != nil {
		return info, fmt.Errorf("blob cache: %w", err)
	}
	for _, e := range entries {
		info.Blobs++
		info.Bytes += e.bytes
		if info.Oldest.IsZero() || e.used.Before(info.Oldest) {
			info.Oldest = e.used
		}
		if e.used.After(info.Newest) {
			info.Newest = e.used
		}
	}
	return info, nil
}

// Prune removes the least recently used blobs until at most o.MaxBytes remain, and files that do not belong to the
// cache. It waits for another process that is pruning. Processes that are reading a removed blob are not disturbed.
func (c *Cache) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	if c == nil {
		return Pruned{}, nil
	}
	root, err := c.open()
	if errors.Is(err, fs.ErrNotExist) {
		return Pruned{}, nil
	}
	if err != nil {
		return Pruned{}, fmt.Errorf("blob cache: %w", err)
	}
	if !o.DryRun {
		lock, err := filelock.LockDir(ctx, c.dir)
		if err != nil {
			return Pruned{}, fmt.Errorf("blob cache: %w", err)
		}
		defer lock.Unlock()
	}
	p, err := c.prune(ctx, root, o)
	if err != nil {
		return p, fmt.Errorf("blob cache: %w", err)
	}
	return p, nil
}

// pruneIfDue prunes after all processes together have stored an eighth of the maximum size since the last time. If
// another process is pruning, it returns.
func (c *Cache) pruneIfDue() {
	slice := max(c.o.MaxBytes/8, 1)
	if c.accounted() < slice {
		return
	}
	lock, free := filelock.TryDir(c.dir)
	switch {
	case free:
		defer lock.Unlock()
		if c.accounted() < slice {
			return // another process has just pruned
		}
	case c.accounted() < 2*slice:
		return
	default:
		// The other process hangs, or the file system has no locks. Two processes that prune at once remove too much at
		// worst.
	}
	root, err := c.open()
	if err != nil {
		return
	}
	p, err := c.prune(context.Background(), root, PruneOptions{MaxBytes: c.o.MaxBytes - slice})
	if err != nil && p.LeftBytes > c.o.MaxBytes {
		c.fail(fmt.Errorf("it cannot be kept within its size: %w", err))
	}
}

// accounted returns how much has been stored since the last pruning.
func (c *Cache) accounted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.account == nil {
		return 0
	}
	info, err := c.account.Stat()
	if err != nil {
		return 0
	}
	return info.Size() * cacheUnit
}

// prune removes as much as it can; the error is that of the first blob that could not be removed.
func (c *Cache) prune(ctx context.Context, root *os.Root, o PruneOptions) (Pruned, error) {
	entries, junk, err := listCache(root)
	if err != nil {
		return Pruned{}, err
	}
	var p Pruned
	for _, e := range entries {
		p.LeftBlobs++
		p.LeftBytes += e.bytes
	}
	if !o.DryRun {
		// Blobs stored from here on count for the next pruning.
		if err := c.forgetAccount(root); err != nil {
			return p, err
		}
		sweepPartial(root)
		for _, name := range junk {
			_ = root.RemoveAll(name)
		}
	}
	// A time stamp in the future comes from a wrong clock and would keep its blob forever.
	limit := c.o.Now().Add(time.Hour)
	slices.SortFunc(entries, func(a, b cacheEntry) int {
		if x, y := a.used.After(limit), b.used.After(limit); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name))
	})
	var failed error
	for _, e := range entries {
		if p.LeftBytes <= o.MaxBytes {
			break
		}
		if err := context.Cause(ctx); err != nil {
			return p, err
		}
		if !o.DryRun {
			// Something else may have replaced the file since.
			if err := root.RemoveAll(e.name); err != nil {
				failed = cmp.Or(failed, err)
				continue
			}
		}
		p.Blobs++
		p.Bytes += e.bytes
		p.LeftBlobs--
		p.LeftBytes -= e.bytes
	}
	return p, failed
}

func (c *Cache) forgetAccount(root *os.Root) error {
	if info, err := root.Lstat(cacheAccount); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := root.OpenFile(cacheAccount, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// listCache returns the blobs in the cache and the names of other files between them.
func listCache(root *os.Root) (entries []cacheEntry, junk []string, err error) {
	shards, err := listDir(root, cacheBlobs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case errors.Is(err, errNoDir):
		return nil, []string{cacheBlobs}, nil
	case err != nil:
		return nil, nil, err
	}
	for _, shard := range shards {
		dir := path.Join(cacheBlobs, shard.Name())
		if !shard.IsDir() {
			junk = append(junk, dir)
			continue
		}
		blobs, err := listDir(root, dir)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoDir) {
				continue // changed since
			}
			return nil, nil, err
		}
		for _, b := range blobs {
			name := path.Join(dir, b.Name())
			d := digest.NewDigestFromEncoded(digest.SHA256, b.Name())
			if !b.Type().IsRegular() || d.Validate() != nil || blobEntry(d) != name {
				junk = append(junk, name)
				continue
			}
			info, err := b.Info()
			if err != nil {
				continue // evicted meanwhile
			}
			entries = append(entries,
				cacheEntry{name: name, bytes: blocks(info.Size()) * cacheUnit, used: info.ModTime()})
		}
	}
	return entries, junk, nil
}
