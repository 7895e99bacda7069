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

	"github.com/operator-bindery/bindery/internal/filelock"
)

// The tag file says that a directory is a cache: to programs that make backups (https://bford.info/cachedir/), and to
// this package, which would never remove files from a directory that was named by mistake.
const (
	cacheTag     = "CACHEDIR.TAG"
	cacheTagText = "Signature: 8a477f597d28d172789f06886806bc55\n" +
		"# This directory holds blobs of container images that bindery has read. It can be removed at any time.\n"
)

// errNoDir says that something else is where a directory belongs.
var errNoDir = errors.New("not a directory")

// open is the cache's directory; fs.ErrNotExist if it has not been made.
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

// create is the cache's directory, which is made if it does not exist.
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
			// It is ours and empty. Other processes may write the same text right now.
			if err = writeCacheTag(c.dir); err == nil {
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

func writeCacheTag(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, cacheTag), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(cacheTagText)
	return errors.Join(err, f.Close())
}

// openCacheDir opens a directory if it is a cache of this user. An empty directory counts as one that does not exist.
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
	case !isOwn(info):
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

// checkCacheParents refuses places in which another user can put a directory of their own in place of the cache: notes,
// which say what a layer was made of, are trusted. The directory above the cache is this program's and no link either,
// unless it is one of the machine, such as /tmp on some systems.
func checkCacheParents(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Lstat(parent)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 && filepath.Dir(parent) != filepath.Dir(filepath.Dir(parent)) {
		return fmt.Errorf("%s is a symbolic link, which is not followed", parent)
	}
	for _, d := range []string{parent, filepath.Dir(parent)} {
		info, err := os.Stat(d)
		if err != nil {
			return err
		}
		othersWrite := info.Mode()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0
		if !isOwn(info) && (othersWrite || !rootOwns(info)) {
			return fmt.Errorf("%s belongs to another user, who can replace what is in it", d)
		}
	}
	return nil
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
	// Somebody may have made the tag, and more, between the two looks.
	if tagged, err := hasCacheTag(root); tagged || err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%s holds other files and is no blob cache: %.80q", root.Name(), names[0].Name())
	}
	return fs.ErrNotExist
}

// hasCacheTag looks for the tag file. One that was cut short is taken as well: the process that wrote it was killed, or
// is at it.
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

// listDir are the entries of a directory in the cache. Anything else under that name, such as a FIFO, is not opened.
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

// openQuickly opens a file that has been found to be a regular one. It does not wait for the other end of a FIFO that has
// taken its place since.
func openQuickly(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|noWait, 0)
}

// makeDir makes a directory in the cache, in place of whatever else is there under its name.
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

// openAccount opens the account to be appended to.
func openAccount(root *os.Root) (*os.File, error) {
	if info, err := root.Lstat(cacheAccount); err == nil && !info.Mode().IsRegular() {
		if err := root.RemoveAll(cacheAccount); err != nil {
			return nil, err
		}
	}
	return root.OpenFile(cacheAccount, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// sweepPartial removes what killed processes were writing. The files of living ones are locked; the one that has been
// created and not yet been locked is lost if it is met here, which costs no more than that its blob is not kept.
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

// abandoned reports whether the process that writes a file has ended. Where there are no locks, it has if nothing was
// written for a day.
func abandoned(f *os.File) bool {
	held, err := filelock.Try(f)
	if err == nil {
		return held
	}
	info, err := f.Stat()
	return err == nil && time.Since(info.ModTime()) > 24*time.Hour
}
