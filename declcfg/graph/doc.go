// Package graph draws the upgrade graphs of a catalog: for people as SVG or as a self-contained HTML page ([WriteSVG],
// [WriteHTML]), and for other programs as mermaid or DOT ([WriteMermaid], [WriteDOT]).
//
//	declcfg.Catalog ──┬──> mermaid   as opm writes it
//	                  └──> sheets ──┬──> layout ──> SVG, HTML
//	                                └──> DOT
//
// A drawing is a function of the catalog: the same catalog gives the same bytes. Names in a catalog are not trusted: each
// format escapes them, and none lets a name become syntax. The package reads and writes no files.
package graph
