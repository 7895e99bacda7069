//go:build linux && cgo && buildah && exclude_graphdriver_btrfs

package fullbuild

import (
	"context"
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/buildah/define"
	"go.podman.io/image/v5/copy"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/signature"
	istorage "go.podman.io/image/v5/storage"
	"go.podman.io/image/v5/transports/alltransports"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage"

	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/internal/platform"
)

// bases copies local images that the file names into the store of the build and returns them as build contexts under
// those names. The library would unpack them with a mount that this process may not make, and would resolve relative
// paths against the context, where builds without RUN use the working directory.
func (r Request) bases(ctx context.Context, store storage.Store, sys *types.SystemContext,
	p v1.Platform) (map[string]*define.AdditionalBuildContext, error) {
	contexts := map[string]*define.AdditionalBuildContext{}
	platforms := map[string]v1.Platform{}
	for _, ref := range r.Images {
		if !platform.Equal(ref.Build, p) || !isLocal(ref.Name) {
			continue
		}
		if other, ok := platforms[ref.Name]; ok {
			if !platform.Equal(other, ref.Platform) {
				return nil, fmt.Errorf("%s is named for %s and for %s: builds with RUN do not support this", ref.Name,
					platform.Name(other), platform.Name(ref.Platform))
			}
			continue
		}
		platforms[ref.Name] = ref.Platform
		name := fmt.Sprintf("localhost/base-%d:%s-%s", len(contexts), ref.Platform.OS, ref.Platform.Architecture)
		if err := copyBase(ctx, store, sys, ref, name); err != nil {
			return nil, fmt.Errorf("image %.200q: %w", ref.Name, err)
		}
		contexts[ref.Name] = &define.AdditionalBuildContext{IsImage: true, Value: name}
	}
	return contexts, nil
}

// isLocal tells whether a name has a transport of the library that is not that of registries.
func isLocal(name string) bool {
	t := alltransports.TransportFromImageName(name)
	return t != nil && t.Name() != docker.Transport.Name()
}

// copyBase copies one image for its platform into the store, if the policy allows it.
func copyBase(ctx context.Context, store storage.Store, sys *types.SystemContext, ref Image, name string) error {
	source, err := alltransports.ParseImageName(ref.Name)
	if err != nil {
		return err
	}
	destination, err := istorage.Transport.ParseStoreReference(store, name)
	if err != nil {
		return err
	}
	policy, err := signature.DefaultPolicy(sys)
	if err != nil {
		return err
	}
	choice := *sys
	choice.OSChoice, choice.ArchitectureChoice, choice.VariantChoice = ref.Platform.OS, ref.Platform.Architecture,
		ref.Platform.Variant
	_, err = library.Copy(ctx, policy, destination, source, &copy.Options{SourceCtx: &choice, DestinationCtx: sys})
	return err
}
