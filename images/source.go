package images

import (
	"fmt"
	"strings"

	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/archive"
	ociarchive "go.podman.io/image/v5/oci/archive"
	"go.podman.io/image/v5/oci/layout"
	"go.podman.io/image/v5/types"
)

// ParseSource reads the name of an image that is to be read: TRANSPORT:DETAILS with the transports of [Parse], or the
// name of a repository in a registry, HOST/REPOSITORY[:TAG][@DIGEST].
func ParseSource(text string) (types.ImageReference, error) {
	name, rest, _ := strings.Cut(text, ":")
	var ref types.ImageReference
	var err error
	switch Transport(name) {
	case Docker:
		ref, err = docker.ParseReference(rest)
	case OCI:
		ref, err = layout.ParseReference(rest)
	case OCIArchive:
		ref, err = ociarchive.ParseReference(rest)
	case DockerArchive:
		ref, err = archive.ParseReference(rest)
	case Directory:
		ref, err = directory.NewReference(rest)
	default:
		ref, err = docker.ParseReference("//" + text)
	}
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", text, err)
	}
	return ref, nil
}
