// Package scaffold makes the files that a catalog author starts from: the olm.package blob of a new package and the
// Dockerfile with which other tools turn a catalog directory into an image.
//
// It never reads a catalog and never builds anything.
package scaffold
