//go:build !windows

package layers

import "os"

// chmodReadable sets the mode of blobs in image layouts, independent of the umask.
func chmodReadable(f *os.File) error { return f.Chmod(0o644) }
