// Package storetest checks that a place of images does what package store says, as testing/fstest checks file systems,
// and has a place in memory.
package storetest
