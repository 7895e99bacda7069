// Package build builds images of catalogs, index databases and operator bundles. A [Builder] is the short way: it opens
// bases and caches, validates catalogs, and has the servers inside the program.
//
//	b, err := build.New(build.WithPlatforms("linux/amd64", "linux/arm64"), build.WithCacheDir(dir))
//	img, err := b.Catalog(ctx, os.DirFS("catalog"))
//	defer img.Close()
//	result, err := images.Push(ctx, img, "registry.example.com/acme/catalog:v1", images.CopyOptions{})
//
// It is built on [Catalog], [Compose], [Index], [Bundle] and [Assemble] with [Options], for programs that need full
// control. They describe an image and offer it as a source of the containers image library, which carries it anywhere:
//
//	catalog (fs.FS or blobs) ──> one layer per package ─┐
//	server program ────────────> one layer ─────────────┼─> Image ──images.Copy──> anywhere
//	base image (not read) ─────> its layers ────────────┘
//
// An image is a pure function of its input: two builds of the same input on different machines have one digest. Its
// formats are those of the OCI image specification and of Docker's image manifest V2, schema 2.
package build
