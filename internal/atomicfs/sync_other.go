//go:build !unix

package atomicfs

import "os"

// SyncDir does nothing: directories cannot be synced on this system.
func SyncDir(string) error { return nil }

// SyncOpenDir does nothing: directories cannot be synced on this system.
func SyncOpenDir(*os.File) error { return nil }
