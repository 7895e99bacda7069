//go:build linux && cgo && buildah && exclude_graphdriver_btrfs

package fullbuild

import (
	"strings"

	"go.podman.io/buildah/define"
)

// additionalContext parses a value of --build-context: an image with the prefix docker-image:// or container-image://,
// else a directory.
func additionalContext(value string) *define.AdditionalBuildContext {
	for _, prefix := range []string{"docker-image://", "container-image://", "docker://"} {
		if name, ok := strings.CutPrefix(value, prefix); ok {
			return &define.AdditionalBuildContext{IsImage: true, Value: name}
		}
	}
	return &define.AdditionalBuildContext{Value: value}
}
