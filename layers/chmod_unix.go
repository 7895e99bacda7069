//go:build !windows

package layers

import "os"

// chmodReadable gives the mode that blobs of image layouts have, whatever the umask is.
func chmodReadable(f *os.File) error { return f.Chmod(0o644) }
