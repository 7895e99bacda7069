// Package stock tells what a registry has of images: whether some are there with everything that they refer to
// ([Check]), and what there is in all, as a file that another machine reads ([Take], [Read]). The file lets a machine
// on the other side of an air gap pack only what is missing.
//
// Nothing is written to the registry. What it answers is from outside: every text is compared with its digest, and
// sizes, counts and depths are bounded.
package stock

import (
	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
)

func isIndex(mediaType string) bool { return manifest.MIMETypeIsMultiImage(mediaType) }

// parsed is a manifest that was read.
type parsed struct {
	digest digest.Digest
	size   int64 // in bytes
	parts  *store.Parts
}
