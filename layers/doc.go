// Package layers makes the layers of images: tar archives that are a pure function of names, modes and bytes, compressed at
// a fixed level, and measured while they are written.
//
//	layer := layers.Layer{Name: "files", Entries: []layers.Entry{layers.Bytes("etc/motd", 0o644, text)}}
//	blob, err := layers.Write(ctx, w, layer, layers.Options{Compression: layers.Gzip})
//
//	Entry... ──Layer──> tar ──┬──> sha256 = diffID
//	                          └──> gzip or zstd ──┬──> sha256 = digest
//	                                              └──> Store: a file named by its digest
//
// The same entries give the same digest on any machine, under any umask, time zone or user: entries are sorted, missing
// parent directories are added once, modes are normalized, owners and times are fixed, and no other metadata of files is
// read. Contents are opened when they are written and pass through one buffer.
//
// The package knows no image configurations, manifests or catalogs, and uses no network. The tar format is that of the OCI
// image specification, section "Image Layer Filesystem Changeset".
package layers
