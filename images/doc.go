// Package images carries images: it parses where they come from and where they go, writes them there all or nothing,
// and reads the wanted paths out of them within limits.
//
//	types.ImageReference ──copy.Image──> docker://                       (retried, the tag last)
//	                          └────────> stage ──rename──> oci: oci-archive: docker-archive: dir:
//
//	oci:DIR:TAG ──Open──> Image (verified manifest and config) ──Extract──> fs.FS of the wanted paths
//
// A stage is a private directory in the file system of the output. An output is either what it was or what it shall be,
// whatever happens on the way; stages of killed runs are removed by the next run. Outputs that are symbolic links are
// refused.
//
// The package knows nothing of catalogs, and reads neither the environment nor the clock. Formats are those of the OCI
// image specification (image layout, manifest, changesets) and of the containers image library.
package images
