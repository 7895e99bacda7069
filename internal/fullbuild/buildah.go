//go:build linux && cgo && buildah

package fullbuild

import (
	_ "github.com/openshift/imagebuilder" // the parser that buildah uses
	_ "go.podman.io/buildah/imagebuildah" // builds with RUN
)
