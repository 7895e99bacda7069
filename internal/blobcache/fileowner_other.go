//go:build !unix

package blobcache

import "io/fs"

// isOwn is true: owners are not known here.
func isOwn(fs.FileInfo) bool { return true }

// rootOwns is true: owners are not known here.
func rootOwns(fs.FileInfo) bool { return true }

// noWait opens a FIFO without waiting for its other end.
const noWait = 0
