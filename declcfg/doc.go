// Package declcfg is the model of an operator catalog: file-based catalogs (FBC) as blobs, how they are read and
// written, the upgrade graph that they describe, and the rules that a catalog must keep.
//
//	fs.FS ──Walk──> Meta ──Load──> Catalog ──Graph──> packages, channels, heads
//	                                  │
//	                                  ├──Validate──> every broken rule, with file and line
//	                                  └──Encoder───> JSON or YAML, byte for byte as opm writes it
//
// A Catalog is the only model of a catalog in this module. Databases, images, bundles and templates are read into it,
// and every edit is a function on it. The package does no network I/O, starts nothing and prints nothing.
//
// The formats are those of the file-based catalog specification of the Operator Lifecycle Manager.
package declcfg
