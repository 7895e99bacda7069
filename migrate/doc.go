// Package migrate converts index databases, and catalog directories with older kinds of blobs, to catalog
// directories, and reports the content of both sides. [Options.Run] does it all; [Options.Prepare] stops before the
// catalog is put in its place. An image of either is a source too.
//
//	database or directory ──> render ──> migration level ──> catalog directory
//	          │                                                     │
//	          └── plain SQL ──> facts <── compared, by Verify ── read again, package by package
//
// Queries are in package sqlite, and the rules of upgrade graphs in package declcfg.
package migrate
