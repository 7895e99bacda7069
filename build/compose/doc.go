// Package compose makes one catalog of the images of others, as a configuration file describes: the composite catalogs of
// the documentation of file-based catalogs. [Read] reads the file, [Open] opens the images, and [build.Compose] builds the
// image:
//
//	config, err := compose.Read(file, "catalog.yaml")
//	refs, err := compose.Open(ctx, config.References, compose.Options{Render: render.Options{Images: client}})
//	img, err := build.Compose(ctx, build.ComposeInput{References: refs.References}, o)
//
// Layers of images that this module built are reused by digest; the catalogs of other images are read.
package compose
