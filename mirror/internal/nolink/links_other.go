//go:build !unix

package nolink

import "io/fs"

// links returns 1: this system does not tell how many names a file has.
func links(fs.FileInfo) uint64 { return 1 }
