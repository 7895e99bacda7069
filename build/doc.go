// Package build builds images of catalogs, index databases and operator bundles. It describes an image and offers it as
// a source of the containers image library, which carries it anywhere; it writes to no registry itself.
//
//	catalog (fs.FS or blobs) ──plan──> one layer per package ─┐
//	server binary ────────────────────> one layer ────────────┼─> Image ──images.Copy──> anywhere
//	base image (opened, not read) ────> its layers ───────────┘
//
// A [Builder] is the short way: it opens bases and caches, validates catalogs, and has the servers inside the program.
//
//	b, err := build.New(build.WithPlatforms("linux/amd64", "linux/arm64"), build.WithCacheDir(dir))
//	img, err := b.Catalog(ctx, os.DirFS("catalog"))
//	defer img.Close()
//	results, err := img.Copy(ctx, destinations, images.CopyOptions{})
//
// It is built on the functions [Catalog], [Compose], [Index], [Bundle] and [Assemble] with [Options], for programs that
// need full control.
//
// An image is a pure function of what goes in: two builds of the same input on different machines have one digest.
//
// The package knows neither tar nor compression nor the rules of catalogs. The image formats are those of the OCI image
// specification (manifest, config, index) and of Docker's image manifest V2, schema 2.
package build
