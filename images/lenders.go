package images

import "github.com/opencontainers/go-digest"

// Lenders is a source of images that knows where registries have its blobs already.
type Lenders interface {
	// Lenders are repositories that have the blob, as "HOST/REPOSITORY", the most likely first. A registry that is asked for
	// the blob by a cross-repository mount (OCI distribution specification, "Mounting a blob from another repository") can
	// take it from there.
	Lenders(d digest.Digest) []string
}
