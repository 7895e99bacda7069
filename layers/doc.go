// Package layers writes layers of images: tar archives that are a pure function of names, modes and bytes, compressed
// at a fixed level, and digested while they are written.
//
//	Entry... ──Layer──> tar ──┬──> sha256 = diffID
//	                          └──> gzip or zstd ──┬──> sha256 = digest
//	                                              └──> Store: a file named by its digest
//
// The same entries give the same digest on every machine, under any umask, time zone or user: entries are sorted,
// missing parent directories are added once, and modes are normalised; owners, times and other file metadata are not
// used. Contents are opened when they are written and copied through one buffer.
//
// The package knows nothing about image configurations, manifests or catalogs, and does no network I/O. The tar format
// is that of the OCI image specification, section "Image Layer Filesystem Changeset".
package layers
