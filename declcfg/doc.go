// Package declcfg is the model of an operator catalog: file-based catalogs (FBC) as blobs, how they are read and written,
// the upgrade graph that they describe, and the rules that a catalog must follow.
//
//	catalog, err := declcfg.Load(ctx, os.DirFS("catalog"), declcfg.LoadOptions{})
//	err = catalog.Validate()
//	err = catalog.Write(os.Stdout, declcfg.FormatYAML)
//
//	fs.FS ──Walk──> Meta ──Load──> Catalog ──Graph──> packages, channels, heads
//	                                  │
//	                                  ├──Validate──> every broken rule, with file and line
//	                                  └──Write─────> JSON or YAML, byte for byte as opm writes it
//
// A [Catalog] is the only model of a catalog in this module: databases, images, bundles and templates are read into it, and
// edits are functions on it. [Stream] reads a catalog that is too large for memory. The package uses no network and prints
// nothing.
//
// The formats are those of the file-based catalog specification of the Operator Lifecycle Manager.
package declcfg
