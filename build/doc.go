// Package build builds images of catalogs, index databases and operator bundles. The result is a source for the
// containers image library, which copies it to any destination; this package does not write to registries.
//
//	catalog (fs.FS or blobs) ──plan──> one layer per package ─┐
//	server binary ────────────────────> one layer ────────────┼─> Image ──images.Copy──> anywhere
//	base image (opened, not read) ────> its layers ───────────┘
//
//	in, err := build.ReadBundle(os.DirFS("bundle"))
//	img, err := build.Bundle(ctx, in, build.Options{Dir: work.Dir()})
//	defer img.Close()
//	results, err := img.Copy(ctx, destinations, images.CopyOptions{})
//
// [Catalog], [Compose], [Index], [Bundle] and [Assemble] each take their input and [Options].
//
// An image depends only on its inputs: two builds of the same input on different machines have the same digest.
//
// The package contains neither tar nor compression nor rules of catalogs. The image formats are those of the OCI image
// specification (manifest, config, index) and of Docker's image manifest V2, schema 2.
package build
