package images

import "github.com/opencontainers/go-digest"

// BlobLocator is a types.ImageSource that knows which repositories have its blobs. A push asks a registry to mount a blob from
// such a repository (OCI distribution specification, "Mounting a blob from another repository") and then does not read it.
type BlobLocator interface {
	// BlobRepositories returns repositories that have the blob, as "HOST/REPOSITORY", the most likely first.
	BlobRepositories(d digest.Digest) []string
}
