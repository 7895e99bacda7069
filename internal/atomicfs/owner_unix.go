//go:build unix

package atomicfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// KeepOwner gives a new file the owner and group of the file that it replaces, as far as permitted. Set the mode
// afterwards: chown clears bits of it.
func KeepOwner(f *os.File, old fs.FileInfo) error {
	uid, gid, ok := Owner(old)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if u, g, ok := Owner(info); !ok || u == uid && g == gid {
		return nil
	}
	if err := f.Chown(uid, gid); err != nil {
		if err = f.Chown(-1, gid); errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) {
			// without permission the writer stays the owner, as with an editor; EINVAL means that the owner is not
			// mapped in this user namespace
			return nil
		}
		return err
	}
	return nil
}

// Owner returns the owner and group of a file.
func Owner(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}
