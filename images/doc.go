// Package images reads, writes and copies container images: in registries, OCI layouts, archives, and other places.
//
// A [Client] opens an image by its name ([Client.Open]) or at a place that is open ([Client.At], [At]), as a [Source],
// which exists when the policy has accepted the image: before that there is nothing that has a digest or can be copied.
// Methods that ask no policy have Unverified in their names. [Client.Image] is the image of a platform, and
// [Image.Extract] returns files of it as an fs.FS, within [Limits]:
//
//	access := registries.Options{Registry: registries.Config{}.Env(os.Getenv)}
//	c, err := images.NewClient(images.ClientOptions{Options: access, Policy: policy.Read})
//	img, err := c.Image(ctx, "quay.io/acme/catalog:v1", v1.Platform{})
//	tree, err := img.Extract(ctx, []string{"configs"}, images.ExtractOptions{})
//
// [Copy] writes an image to several destinations, which [transport.Table.Parse] reads. A destination has the old or the
// new image at any time, whatever fails. [CopyOptions.OpenWriter] writes what is attached to an image that exists.
//
// Which places there are says a table, [BuiltIn] or another one: package transport has its rows, package library those
// of podman's store, and package registries what there is for registries alone.
//
// Everything that is read is compared with its digest and size. Images are hostile input: sizes, counts and depths have
// limits, and no path leads out of an image. Configuration of the machine counts as it does for podman:
// registries.conf, policy.json, certificates and files with credentials. A [lockfile.Lock] records the digests of
// names; a [blobcache.Cache] keeps blobs of registries.
//
// Formats and protocols are those of the OCI image and distribution specifications.
package images
