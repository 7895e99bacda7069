// Package layers makes the layers of images: tar archives that are a pure function of names, modes and bytes, compressed
// at a fixed level, and measured while they are written.
//
//	Entry... ──Layer──> tar ──┬──> sha256 = diffID
//	                          └──> gzip or zstd ──┬──> sha256 = digest
//	                                              └──> Store: a file named by its digest
//
// The same entries give the same digest on any machine, under any umask, time zone or user: entries are sorted, missing
// parent directories are added once, modes are normalised, owners and times are options and nothing else of a file's
// metadata is looked at. Contents are opened when they are written and pass through one buffer.
//
// The package knows nothing of image configurations, manifests or catalogs, and does no network I/O. The tar format is
// that of the OCI image specification, section "Image Layer Filesystem Changeset".
package layers
