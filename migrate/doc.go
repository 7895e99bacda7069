// Package migrate turns index databases, and catalog directories of older form, into catalog directories, with an
// account of what both sides hold.
//
//	database or directory ──> render ──> migration level ──> catalog directory
//	          │                                                     │
//	          └── plain SQL ──> facts <── compared, by Verify ── read again, package by package
//
// SQL does not live here, nor the rules of the graph.
package migrate
