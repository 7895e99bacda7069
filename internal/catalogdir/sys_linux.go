package catalogdir

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// exchange makes two names stand for what the other one stood for, in one step. The error is [errors.ErrUnsupported] where
// that cannot be done.
func exchange(root *os.Root, a, b string) error { return renameat2(root, a, b, unix.RENAME_EXCHANGE) }

// renameNoReplace gives something a name that is free.
func renameNoReplace(root *os.Root, from, to string) error {
	err := renameat2(root, from, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, errors.ErrUnsupported) {
		return renameIfFree(root, from, to)
	}
	return err
}

func renameat2(root *os.Root, from, to string, flags uint) (err error) {
	fromDir, err := root.Open(path.Dir(from))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fromDir.Close()) }()
	toDir, err := root.Open(path.Dir(to))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, toDir.Close()) }()
	err = unix.Renameat2(int(fromDir.Fd()), path.Base(from), int(toDir.Fd()), path.Base(to), flags)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}

// hasAttributes reports whether a directory has extended attributes, such as an access control list, which a copy of it would
// lose. Labels of the system's own are given to new directories again.
func hasAttributes(root *os.Root, name string) (_ bool, err error) {
	f, err := root.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	names := make([]byte, 64<<10)
	n, err := unix.Flistxattr(int(f.Fd()), names)
	if errors.Is(err, unix.ENOTSUP) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for name := range strings.SplitSeq(string(names[:n]), "\x00") {
		if name != "" && !strings.HasPrefix(name, "security.") {
			return true, nil
		}
	}
	return false, nil
}
