//go:build !unix

package blobcache

// noWait opens a FIFO without waiting for its other end.
const noWait = 0
