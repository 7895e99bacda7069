//go:build !unix

package atomicfs

import (
	"io/fs"
	"os"
)

// KeepOwner does nothing: files have no such owners on this system.
func KeepOwner(*os.File, fs.FileInfo) error { return nil }

// Owner knows none.
func Owner(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }
