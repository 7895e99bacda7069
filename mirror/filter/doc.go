// Package filter keeps the part of a catalog that an image set asks for, bundle by bundle as oc-mirror v2 does, and
// makes a valid catalog of it.
//
// Two things come out of it. [Result].Kept is what oc-mirror keeps, whether a catalog can be made of it or not.
// [Result].Catalog is the catalog to be published: it has the same bundles, and where the kept channels would make it
// invalid they are repaired, if that changes no bundle. What cannot be repaired is a problem of the level error:
// nothing may be published then.
//
// The rules differ from those of package edit's Filter on purpose. Edges stay as they are, also to what is not kept;
// without versions each channel keeps its head; and bundles outside of the versions stay if the channel would have
// several heads without them.
//
// The package works on the skeleton of a catalog, without manifests, and reads no files. Its functions may be called
// concurrently; they do not change the catalog, with which their results share memory.
package filter
