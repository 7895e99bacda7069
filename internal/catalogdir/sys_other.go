//go:build !unix

package catalogdir

import "os"

// syncDir does nothing: directories cannot be synced on this system.
func syncDir(*os.File) error { return nil }
