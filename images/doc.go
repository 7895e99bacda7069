// Package images reads, writes and copies container images: in registries, OCI layouts, archives and podman's store.
//
// A [Client] opens images by name, and [Image.Extract] returns files of them as an fs.FS, within [Limits]:
//
//	c, err := images.NewClient(images.ClientOptions{Registry: images.Registry{}.Env(os.Getenv)})
//	img, err := c.Open(ctx, "quay.io/acme/catalog:v1")
//	tree, err := img.Extract(ctx, []string{"configs"}, images.ExtractOptions{})
//
// [Copy] writes an image to several [Destination] values, which [Parse] reads, and [Push] to one name in a registry. A
// destination has the old or the new image at any time, whatever fails.
//
// Everything that is read is compared with its digest and size. Images are hostile input: sizes, counts and depths have
// limits, and no path leads out of an image. Configuration of the machine counts as it does for podman:
// registries.conf, policy.json, certificates and files with credentials. A [Lock] records the digests of names; a
// [Cache] keeps blobs of registries.
//
// The work is done by internal packages: registry (the client and the pusher), layouts (layouts, archives,
// directories), imagestore (podman's store) and imagefs (files in layers). Formats and protocols are those of the OCI
// image and distribution specifications.
package images
