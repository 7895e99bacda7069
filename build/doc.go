// Package build says what images are made of: configuration, labels, layers, base, platforms. It describes an image and
// offers it as a source of the containers image library, which carries it anywhere; it writes to no registry itself.
//
//	catalog (fs.FS or blobs) ──plan──> one layer per package ─┐
//	server binary ────────────────────> one layer ────────────┼─> Image ──Reference──> images.Copy ─> anywhere
//	base image (opened, not read) ────> its layers ───────────┘
//
// An image is a pure function of what goes in: two builds of the same input on different machines have one digest.
//
// The package knows neither tar nor compression nor the rules of catalogs. The image formats are those of the OCI image
// specification (manifest, config, index) and of Docker's image manifest V2, schema 2.
package build
