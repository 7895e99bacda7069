//go:build !unix

package blobcache

import "io/fs"

// isOwn returns true: this system has no numeric owners.
func isOwn(fs.FileInfo) bool { return true }

// rootOwns returns true: this system has no numeric owners.
func rootOwns(fs.FileInfo) bool { return true }

// noWait opens a FIFO without waiting for its other end.
const noWait = 0
