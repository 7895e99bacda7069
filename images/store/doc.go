// Package store has what every place of images does, and what is done with images at such places.
//
// A place is a repository of a registry, an OCI layout, an archive that crosses an air gap, or an image that is being
// assembled. It is a [Reader], and where it can be written to a [Writer]; what it can beyond that is a value,
// [Abilities], and nothing is found out by type assertions. [Walk] visits what belongs to an image at a reader, and
// [Copy] copies an image from a reader to writers. Package storetest checks that a place does what is said here.
package store
