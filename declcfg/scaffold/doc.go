// Package scaffold makes the files that a catalog author starts from: the olm.package blob of a new package ([Package]) and
// the Dockerfile with which other tools build an image of a catalog directory ([WriteDockerfile]). It neither reads catalogs
// nor builds images.
package scaffold
