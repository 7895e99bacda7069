package library

import (
	"context"

	"go.podman.io/image/v5/copy"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/internal/libimage"
)

// Copy is the library's copy of an image that a policy accepts, for programs that work with references of the library.
// It returns the manifest or index that was written.
func Copy(ctx context.Context, policy *signature.Policy, to, from types.ImageReference, o *copy.Options) ([]byte, error) {
	return libimage.Run(ctx, policy, to, from, o)
}
