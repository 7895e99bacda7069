// Package stock tells what a registry has of images: whether some are there with everything that they refer to
// ([Check]), and what there is in all, as a file that another machine reads ([Take], [Read]). The file lets a machine
// on the other side of an air gap pack only what is missing.
//
// Nothing is written to the registry. What it answers is from outside: every text is compared with its digest, and
// sizes, counts and depths are bounded.
package stock

import (
	"context"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/referrers"
)

// Repository is a repository that is looked into, as images.RemoteRepository is. It is safe for concurrent use.
type Repository interface {
	referrers.Reader
	// Head returns what a tag or digest stands for; [io/fs.ErrNotExist] if there is none.
	Head(ctx context.Context, name string) (v1.Descriptor, error)
	// HasBlob tells whether the repository has a blob of that digest and size.
	HasBlob(ctx context.Context, d v1.Descriptor) (bool, error)
	// Tags returns the tags; [io/fs.ErrNotExist] if there is no such repository.
	Tags(ctx context.Context) ([]string, error)
}

// Open returns the repository with a name HOST/PATH. It is called concurrently.
type Open func(name string) (Repository, error)

func isIndex(mediaType string) bool { return manifest.MIMETypeIsMultiImage(mediaType) }

// parsed is a manifest that was read.
type parsed struct {
	digest digest.Digest
	size   int64 // in bytes
	parts  *referrers.Parts
}
