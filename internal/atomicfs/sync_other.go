//go:build !unix

package atomicfs

// SyncDir does nothing: directories cannot be synced on this system.
func SyncDir(string) error { return nil }
