// Package render turns references into catalogs: whatever a reference names, its blobs come out in one form and order.
//
//	catalog directory ─┐
//	index database    ─┼─> blobs, properties and related images in order ─> migration level ─> one sorted stream
//	image             ─┘
//
// Directories and databases are read here; images are read by what the caller plugs in (see Options.Image). Blobs are
// never written here.
package render
