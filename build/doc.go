// Package build builds images of catalogs, index databases and operator bundles. The result is a source for the
// containers image library, which copies it to any destination; this package does not write to registries.
//
//	catalog (fs.FS or blobs) ──plan──> one layer per package ─┐
//	server binary ────────────────────> one layer ────────────┼─> Image ──images.Copy──> anywhere
//	base image (opened, not read) ────> its layers ───────────┘
//
// A [Builder] is the simple API: it opens bases and caches, validates catalogs, and uses the servers embedded in the
// program.
//
//	b, err := build.New(build.WithPlatforms("linux/amd64", "linux/arm64"), build.WithCacheDir(dir))
//	img, err := b.Catalog(ctx, os.DirFS("catalog"))
//	defer img.Close()
//	result, err := img.Push(ctx, "registry.example.com/acme/catalog:v1", images.CopyOptions{})
//
// It uses the functions [Catalog], [Compose], [Index], [Bundle] and [Assemble] with [Options], which are for programs
// that need full control.
//
// An image depends only on its inputs: two builds of the same input on different machines have the same digest.
//
// The package contains neither tar nor compression nor rules of catalogs. The image formats are those of the OCI image
// specification (manifest, config, index) and of Docker's image manifest V2, schema 2.
package build
