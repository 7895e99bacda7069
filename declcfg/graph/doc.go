// Package graph draws the upgrade graphs of a catalog: for people, as SVG or as a page of HTML that needs nothing else,
// and for other programs, as mermaid or as DOT.
//
//	declcfg.Catalog ──┬──> mermaid   as opm writes it
//	                  └──> sheets ──┬──> layout ──> SVG, HTML
//	                                └──> DOT
//
// A drawing is a function of the catalog: the same catalog gives the same bytes. Names come from outside; each format
// escapes them in its own way, and none of them lets a name become syntax. The package reads and writes no files.
package graph
