package images

import (
	"context"
	"strings"

	"go.podman.io/image/v5/types"
)

// Push copies an image to a name in a registry, such as registry.example.com/acme/catalog:v1. If the source has a
// method Copy like that of build.Image, Push calls it.
func Push(ctx context.Context, src types.ImageReference, name string, o CopyOptions) (Result, error) {
	dest, err := Parse("docker://" + strings.TrimPrefix(name, "docker://"))
	if err != nil {
		return Result{}, err
	}
	var results []Result
	if self, ok := src.(interface {
		Copy(ctx context.Context, dests []Destination, o CopyOptions) ([]Result, error)
	}); ok {
		results, err = self.Copy(ctx, []Destination{dest}, o)
	} else {
		results, err = Copy(ctx, src, []Destination{dest}, o)
	}
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}
