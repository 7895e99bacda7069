// Package graph draws the upgrade graphs of a catalog: for people, as SVG or as a self-contained HTML page, and for
// other programs, as mermaid or DOT.
//
//	declcfg.Catalog ──┬──> mermaid   as opm writes it
//	                  └──> sheets ──┬──> layout ──> SVG, HTML
//	                                └──> DOT
//
// A drawing depends only on the catalog: the same catalog gives the same bytes. Names are untrusted; each format
// escapes them so that they cannot become syntax. The package reads and writes no files.
package graph
