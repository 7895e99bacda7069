// Package scaffold generates files for new catalogs: the olm.package blob of a new package, and the Dockerfile with
// which other tools build an image from a catalog directory.
//
// It reads no catalogs and builds nothing.
package scaffold
