// Package declcfg is the model of an operator catalog: the blobs of file-based catalogs (FBC), reading and writing
// them, the upgrade graph that they describe, and the rules for valid catalogs.
//
//	fs.FS ──Walk──> Meta ──Load──> Catalog ──Graph──> packages, channels, heads
//	                                  │
//	                                  ├──Validate──> every broken rule, with file and line
//	                                  └──Write─────> JSON or YAML, byte for byte as opm writes it
//
// A Catalog is the only model of a catalog in this module. Databases, images, bundles and templates are read into it,
// and every edit is a function on it. The package does no network I/O, starts no processes and prints nothing.
//
// The formats are those of the file-based catalog specification of the Operator Lifecycle Manager.
package declcfg
