package images

import (
	"context"

	"github.com/opencontainers/go-digest"
)

// BlobLocator is a types.ImageSource that knows which repositories have its blobs. A push asks a registry to mount a
// blob from such a repository (OCI distribution specification, "Mounting a blob from another repository") and then does
// not read it.
type BlobLocator interface {
	// BlobRepositories returns repositories that have the blob, as "HOST/REPOSITORY", the most likely first.
	BlobRepositories(d digest.Digest) []string
}

// LocalBlobs is a types.ImageSource that has blobs as complete files that do not change. A copy to a layout in the same
// file system takes them by a hard link.
type LocalBlobs interface {
	// LocalBlob returns the file of a blob, if there is one. Its content has been compared with the digest.
	LocalBlob(d digest.Digest) (path string, ok bool)
}

// FileBlobs is a types.ImageSource that can make a file of a blob with less work than a copy takes, which reads, checks
// and writes its bytes.
type FileBlobs interface {
	// BlobFile returns a file like that of [LocalBlobs], or false if the blob is to be read. It is called concurrently.
	BlobFile(ctx context.Context, d digest.Digest) (path string, ok bool)
}
