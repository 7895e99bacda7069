//go:build !unix

package atomicfs

import "os"

// SyncDir does nothing: directories cannot be synced on this system.
func SyncDir(string) error { return nil }

// tryLock reports false: an open file cannot be locked by name here, so nothing is taken for stale.
func tryLock(*os.File) bool { return false }

// lock reports false: see tryLock.
func lock(*os.File) bool { return false }
