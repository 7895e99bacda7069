// Package images carries images: it parses where they come from and where they go, writes them there all or nothing,
// and reads the wanted paths out of them within limits.
//
//	types.ImageReference ──copy.Image──> docker://                       (retried, the tag last)
//	                          └────────> stage ──rename──> oci: oci-archive: docker-archive: dir:
//
//	docker://  ──registrySource──┐
//	oci: dir:  ──dirFiles──┐     ├──Client.Open──> Image (checked manifest and configuration)
//	archives   ──tarFiles──┴─────┘                   ├──Extract───> fs.FS of the wanted paths
//	                                                 └──CopyFile──> one file, as a stream
//
// What is read has its digest and size, or it is an error. Layers are read from the top, only as far as something
// wanted can come from them, and nothing of them is unpacked; archives are read where they lie. Registries are asked by
// a client of this package, which decides where credentials go and what is tried again; what is configured on a machine
// - registries.conf, policy.json, certificates, files of credentials - counts as it does for podman and docker.
//
// A stage is a private directory in the file system of the output. An output is either the old or the new one, whatever
// happens on the way; stages of killed runs are removed by the next run. Outputs that are symbolic links are refused.
//
// Blobs of registries are kept in a cache, if one is given, and checked each time they are read. A [Lock] is a file that
// records which digests names stood for.
//
// The package knows nothing of catalogs. It reads the environment only where the containers library does, and through
// [Registry.Env]. Formats and protocols are those of the OCI image and distribution specifications and of the containers
// image library.
package images
