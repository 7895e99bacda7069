package blobcache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/filelock"
)

// The tag file marks a directory as a cache: for backup programs (https://bford.info/cachedir/) and for this package,
// which never removes files from a directory without it.
const (
	cacheTag     = "CACHEDIR.TAG"
	cacheTagText = "Signature: 8a477f597d28d172789f06886806bc55\n" +
		"# This directory holds blobs of container images that bindery has read. It can be removed at any time.\n"
)

// errNoDir is returned if something else is in place of a directory.
var errNoDir = errors.New("not a directory")

// open opens the cache's directory; the error is fs.ErrNotExist if it has not been created.
func (c *Cache) open() (*os.Root, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.root == nil {
		root, err := openCacheDir(c.dir)
		if err != nil {
			return nil, err
		}
		c.root = root
	}
	return c.root, nil
}

// create opens the cache's directory and creates it if needed.
func (c *Cache) create() (*os.Root, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.root == nil {
		err := os.MkdirAll(filepath.Dir(c.dir), 0o700)
		if err == nil {
			err = checkCacheParents(c.dir)
		}
		if err == nil {
			err = os.Mkdir(c.dir, 0o700)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if c.root, err = openCacheDir(c.dir); errors.Is(err, fs.ErrNotExist) {
			// The directory is this user's and empty. Other processes may write the same text at this moment.
			if err = os.WriteFile(filepath.Join(c.dir, cacheTag), []byte(cacheTagText), 0o600); err == nil {
				c.root, err = openCacheDir(c.dir)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if c.account == nil {
		sweepPartial(c.root)
		account, err := openAccount(c.root)
		if err != nil {
			return nil, err
		}
		c.account = account
	}
	return c.root, nil
}

// openCacheDir opens a directory if it is a cache of this user. An empty directory counts as a missing one.
func openCacheDir(dir string) (*os.Root, error) {
	if err := checkCacheParents(dir); err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a symbolic link, which is not followed", dir)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", dir)
	case !ownedBy(info, os.Geteuid()):
		return nil, fmt.Errorf("%s belongs to another user", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if err := checkCacheDir(root, info); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// checkCacheParents refuses a directory above the cache that is a link or another user's. Those above it may be anyone's, as
// volumes are: no content of the cache is trusted. Symbolic links above the cache are accepted only if they belong to root,
// such as /tmp on some systems.
func checkCacheParents(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Lstat(parent)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 && filepath.Dir(parent) != filepath.Dir(filepath.Dir(parent)) {
		return fmt.Errorf("%s is a symbolic link, which is not followed", parent)
	}
	if info, err = os.Stat(parent); err != nil {
		return err
	}
	if !ownedBy(info, os.Geteuid()) {
		return othersError(parent, info)
	}
	return nil
}

// othersError is the error about a directory of another user.
func othersError(dir string, info fs.FileInfo) error {
	owner, _, _ := atomicfs.Owner(info)
	return fmt.Errorf("%s belongs to another user (uid %d, mode %04o)", dir, owner, info.Mode().Perm())
}

// ownedBy tells whether a file belongs to a user, or the system has no numeric owners.
func ownedBy(info fs.FileInfo, user int) bool {
	owner, _, ok := atomicfs.Owner(info)
	return !ok || owner == user
}

func checkCacheDir(root *os.Root, want fs.FileInfo) error {
	if info, err := root.Stat("."); err != nil || !os.SameFile(info, want) {
		return fmt.Errorf("%s is being replaced", root.Name())
	}
	tagged, err := hasCacheTag(root)
	if tagged || err != nil {
		return err
	}
	names, err := listDir(root, ".")
	if err != nil {
		return err
	}
	// Another process may have created the tag and more between the two checks.
	if tagged, err := hasCacheTag(root); tagged || err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%s holds other files and is no blob cache: %.80q", root.Name(), names[0].Name())
	}
	return fs.ErrNotExist
}

// hasCacheTag looks for the tag file. A truncated one counts too: its writer was killed or is still writing.
func hasCacheTag(root *os.Root) (bool, error) {
	info, err := root.Lstat(cacheTag)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is not a regular file", path.Join(root.Name(), cacheTag))
	}
	f, err := openQuickly(root, cacheTag)
	if err != nil {
		return false, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(len(cacheTagText))+1))
	if err != nil {
		return false, err
	}
	if !strings.HasPrefix(cacheTagText, string(text)) {
		return false, fmt.Errorf("%s belongs to the cache of another program", path.Join(root.Name(), cacheTag))
	}
	return true, nil
}

// listDir returns the entries of a directory in the cache. Anything else with that name, such as a FIFO, is not opened.
func listDir(root *os.Root, name string) ([]fs.DirEntry, error) {
	if info, err := root.Lstat(name); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, errNoDir
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// openQuickly opens a file that was found to be regular. It does not block if a FIFO has replaced the file since.
func openQuickly(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|noWait, 0)
}

// makeDir creates a directory in the cache and replaces anything else with that name.
func makeDir(root *os.Root, name string) error {
	for at := ""; at != name; {
		next, _, _ := strings.Cut(strings.TrimPrefix(name[len(at):], "/"), "/")
		at = path.Join(at, next)
		if info, err := root.Lstat(at); err == nil && !info.IsDir() {
			_ = root.Remove(at)
		}
		if err := root.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// openAccount opens the account file for appending.
func openAccount(root *os.Root) (*os.File, error) {
	if info, err := root.Lstat(cacheAccount); err == nil && !info.Mode().IsRegular() {
		if err := root.RemoveAll(cacheAccount); err != nil {
			return nil, err
		}
	}
	return root.OpenFile(cacheAccount, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// sweepPartial removes temporary files of killed processes. Live writers hold a lock on theirs. A file that was created
// and is not locked yet is removed too; its blob is then not stored, which is harmless.
func sweepPartial(root *os.Root) {
	entries, err := listDir(root, cachePartial)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := path.Join(cachePartial, e.Name())
		if !e.Type().IsRegular() {
			_ = root.RemoveAll(name)
			continue
		}
		f, err := openQuickly(root, name)
		if err != nil {
			continue
		}
		if abandoned(f) {
			_ = root.Remove(name)
		}
		f.Close()
	}
}

// abandoned reports whether the writer of a file has ended. Without locks, a file counts as abandoned after a day
// without writes.
func abandoned(f *os.File) bool {
	held, err := filelock.Try(f)
	if err == nil {
		return held
	}
	info, err := f.Stat()
	return err == nil && time.Since(info.ModTime()) > 24*time.Hour
}
