// Package library is the edge to the containers libraries: it has the transports that only they write, which are the
// store of podman, archives of "docker save" and directories of the containers tools.
//
//	transports := library.Transports(images.BuiltIn())
//
// A program that imports it needs build tags of those libraries: containers_image_openpgp and
// exclude_graphdriver_btrfs, unless cgo has the libraries of C that they use. Package images does without.
package library
