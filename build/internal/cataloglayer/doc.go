// Package cataloglayer makes the layers of catalog images: that of the server, those of packages with their catalogs
// and serve caches, and those of caches of the whole catalog. Package build assembles images of them, and package
// inspect rebuilds them to verify an image.
//
//	server program ──Program──> Server ────────────┐
//	files of packages, Caches ──> Caches.Packages ─┼──> layers.Layer
//	                         └──> Caches.Whole ────┘
//
// A layer is a pure function of its input, so that its key is known before it is written.
package cataloglayer
