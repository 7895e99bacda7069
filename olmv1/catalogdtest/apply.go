package catalogdtest

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	whiteoutPrefix = ".wh."
	opaqueMarker   = ".wh..wh..opq"
)

// onlyBelow returns the filter of a catalog: it takes what is the path of the label or below it, by the names of the
// entries.
func onlyBelow(label string) func(name string) (bool, error) {
	want := path.Clean(strings.TrimPrefix(label, "/"))
	return func(name string) (bool, error) {
		relative, err := filepath.Rel(want, path.Clean(strings.TrimPrefix(name, "/")))
		if err != nil {
			return false, fmt.Errorf("error getting relative path: %w", err)
		}
		return relative != ".." && !strings.HasPrefix(relative, "../"), nil
	}
}

// apply unpacks a layer over what is there, as containerd's archive.Apply does.
func (u *Unpacked) apply(layer io.Reader, filter func(string) (bool, error)) error {
	written := map[string]bool{}
	for tr := tar.NewReader(layer); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		h.Name = filepath.Clean(h.Name)
		if ok, err := filter(h.Name); err != nil {
			return err
		} else if !ok {
			continue
		}
		parent, base := filepath.Split(h.Name)
		if parent, err = u.resolve(parent); err != nil {
			return err
		}
		at := filepath.Join(parent, filepath.Join("/", base))
		if at == u.Root {
			continue
		}
		if err := makeParents(parent); err != nil {
			return err
		}
		if hides, err := u.whiteout(at, written); err != nil {
			return err
		} else if hides {
			continue
		}
		if info, err := os.Lstat(at); err == nil && (!info.IsDir() || h.Typeflag != tar.TypeDir) {
			if err := u.remove(at); err != nil {
				return err
			}
		}
		if err := u.create(at, h, tr); err != nil {
			return err
		}
		written[at] = true
	}
}

// whiteout removes what an entry hides; false if it hides nothing.
func (u *Unpacked) whiteout(at string, written map[string]bool) (bool, error) {
	dir, base := filepath.Split(at)
	if base == opaqueMarker {
		return true, filepath.WalkDir(filepath.Clean(dir), func(name string, _ fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // its directory is gone
			case err != nil || name == filepath.Clean(dir) || written[name]:
				return err
			}
			return u.remove(name)
		})
	}
	hidden, ok := strings.CutPrefix(base, whiteoutPrefix)
	if !ok {
		return false, nil
	}
	target := filepath.Join(dir, hidden)
	if !strings.HasPrefix(target, dir) {
		return true, fmt.Errorf("invalid whiteout name: %s: invalid archive", base)
	}
	return true, u.remove(target)
}

func (u *Unpacked) remove(at string) error {
	for name := range u.special {
		if name == at || strings.HasPrefix(name, at+string(filepath.Separator)) {
			delete(u.special, name)
		}
	}
	return os.RemoveAll(at)
}

// create makes what an entry describes. The owner and the mode of files are those of the process, as catalogd makes
// them.
func (u *Unpacked) create(at string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		if info, err := os.Lstat(at); err == nil && info.IsDir() {
			return nil
		}
		return os.Mkdir(at, 0o700)
	case tar.TypeReg, '\x00':
		f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	case tar.TypeBlock, tar.TypeChar, tar.TypeFifo:
		u.special[at] = h.FileInfo().Mode().Type()
		return os.WriteFile(at, nil, 0o600)
	case tar.TypeLink:
		parent, base := filepath.Split(h.Linkname)
		parent, err := u.resolve(parent)
		if err != nil {
			return err
		}
		target := filepath.Join(parent, base)
		if !strings.HasPrefix(target, u.Root) {
			target = u.Root
		}
		return os.Link(target, at)
	case tar.TypeSymlink:
		return os.Symlink(h.Linkname, at)
	case tar.TypeXGlobalHeader:
		return nil
	}
	return fmt.Errorf("unhandled tar header type %d", h.Typeflag)
}

// makeParents makes the directories that lead to an entry.
func makeParents(dir string) error {
	if info, err := os.Lstat(dir); err == nil {
		if !info.IsDir() {
			return &os.PathError{Op: "mkparent", Path: dir, Err: syscall.ENOTDIR}
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeParents(filepath.Dir(dir)); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 255

// resolve returns the path of a name in the tree with all symbolic links followed, none of which leads out of it.
func (u *Unpacked) resolve(name string) (string, error) {
	rest := strings.Split(filepath.ToSlash(name), "/")
	var at []string
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = at[:max(len(at)-1, 0)]
			continue
		}
		target, err := os.Readlink(filepath.Join(u.Root, filepath.Join(at...), part))
		if err != nil { // not there, or no link
			at = append(at, part)
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("failed to get root path: too many links")
		}
		if filepath.IsAbs(target) {
			at = nil
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	return filepath.Join(u.Root, filepath.Join(at...)), nil
}
