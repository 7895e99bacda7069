package declcfg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/internal/filetx"
)

// OpenDir opens a catalog directory. Symbolic links are followed inside it; links that lead out of it are errors when
// they are read, so that an untrusted catalog cannot name local files. The directory itself may be a link.
//
// If an edit of the catalog is renaming its files, OpenDir waits for it. If an edit was killed meanwhile, OpenDir
// returns an error, because some files are old and others new until the next edit rolls it back.
func OpenDir(dir string) (fs.FS, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a directory", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if err := filetx.Await(root); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), root.Close())
	}
	// The root's finalizer closes it: a catalog's file system has no Close.
	return root.FS(), nil
}

// Files lists the files of a catalog in lexical order: every regular file, or link to one, that no ignore file ignores,
// whatever it is called. These are the files that [Load] reads.
func Files(fsys fs.FS) ([]string, error) { return catalogFiles(fsys) }

// Ignored reports whether [Load] would skip a file with that slash-separated name in fsys: because it is an ignore
// file, or an ignore file matches it.
func Ignored(fsys fs.FS, name string) (bool, error) {
	if path.Base(name) == IgnoreFile {
		return true, nil
	}
	var ig ignorer
	for i := range len(name) {
		dir := name[:i]
		if i == 0 {
			dir = "."
		} else if name[i] != '/' {
			continue
		}
		if err := ig.read(fsys, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return ig.ignores(name), nil
}

// maxDepth is the maximum nesting of directories. Opening one goes through all its parents, so that the cost is
// quadratic.
const maxDepth = 100

// catalogFiles lists the files of a catalog in lexical order: every regular file, or link to one, that no ignore file
// ignores, whatever it is called.
func catalogFiles(fsys fs.FS) ([]string, error) {
	var files []string
	var ig ignorer
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if isVolumeInternal(fsys, name) {
				return fs.SkipDir
			}
			if strings.Count(name, "/") >= maxDepth {
				return fmt.Errorf("%.80s...: %w: more than %d directories in one another", name, ErrLimit, maxDepth)
			}
			// The ignore file of a directory must be read before the files that sort before it.
			if err := ig.read(fsys, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if path.Base(name) == IgnoreFile || ig.ignores(name) {
			return nil
		}
		mode := d.Type()
		if mode&fs.ModeSymlink != 0 {
			info, err := fs.Stat(fsys, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			mode = info.Mode()
			if mode.IsDir() {
				if isVolumeInternal(fsys, name) {
					return nil
				}
				return fmt.Errorf("read %s: is a directory (a symbolic link to one, which is not followed)", name)
			}
		}
		if !mode.IsRegular() {
			return fmt.Errorf("read %s: not a regular file", name)
		}
		files = append(files, name)
		return nil
	})
	return files, err
}

// isVolumeInternal reports whether a directory is one with which Kubernetes updates the content of a ConfigMap or
// projected volume ("..data" and its target): its files are visible through links next to it.
func isVolumeInternal(fsys fs.FS, name string) bool {
	base := path.Base(name)
	if !strings.HasPrefix(base, "..") || name == "." {
		return false
	}
	_, err := fs.Stat(fsys, path.Join(path.Dir(name), "..data"))
	return err == nil
}
