// Package render turns references into catalogs: whatever a reference names, its blobs come out in one form and order.
//
//	catalog directory ─┐
//	index database    ─┼─> blobs, properties and related images in order ─> migration level ─> one sorted stream
//	image             ─┘
//
// Directories and databases are read here, images by a client of package images. Blobs are never written here. What is
// found out besides the blobs is in an [Account].
package render
