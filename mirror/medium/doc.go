// Package medium writes and reads the archives that carry images across an air gap: plain tar files of limited size,
// mirror_000001.tar and on, in which each blob is once. There are two forms of content. [OCI] is bindery's own: all
// segments, extracted into one directory, are one OCI image layout. [OCMirror] is that of oc-mirror v2, the storage of
// a docker distribution registry. Archives of that program are read as well.
//
// A [Writer] streams blobs into the current segment, so that nothing is on disk twice, and goes on with what an
// interrupted run left. A [Reader] knows the headers of all segments and reads blobs where they are, so that nothing is
// unpacked. Both are made of repositories, named by their path without a host, for the copying of images.
//
// A [History] is what earlier archives had; it decides what an archive leaves out, as the inventory of a registry does.
package medium
