//go:build !unix

package catalogdir

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: files have no such owners on this system.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

// owner knows none.
func owner(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }

// syncDir does nothing: directories cannot be synced on this system.
func syncDir(*os.File) error { return nil }
