// Package render turns references into catalogs: whatever a reference names, its blobs are returned in one form and
// order.
//
// [Options.Render] renders one reference, [Options.RenderAll] several into one stream, and [Bundles] reads bundles.
//
//	catalog directory ─┐
//	index database    ─┼─> blobs, properties and related images in order ─> migration level ─> one sorted stream
//	image             ─┘
//
// Directories and databases are read here, images with a client of package images. The package writes no blobs. Results
// besides the blobs are in an [Account].
package render
