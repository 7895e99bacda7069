package images

import (
	"fmt"
	"path/filepath"

	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/docker/archive"
	"go.podman.io/image/v5/oci/layout"
	"go.podman.io/image/v5/types"
)

// format is how an image is kept in files, as the containers tools write it before the colon.
type format string

const (
	formatOCI           format = "oci"
	formatOCIArchive    format = "oci-archive"
	formatDockerArchive format = "docker-archive"
	formatDirectory     format = "dir"
)

// place is an image in files.
type place struct {
	format format
	// path is the directory or the file.
	path string
	// name chooses an image in a layout or an archive: a tag or a reference, and for reading also "@" and the number of the
	// image. It may be empty.
	name string
}

// String is the place as users write it.
func (p place) String() string {
	if p.name == "" {
		return string(p.format) + ":" + p.path
	}
	return string(p.format) + ":" + p.path + ":" + p.name
}

// reference is the library's reference to the image of a place, at another path.
func (p place) reference(path string) (types.ImageReference, error) {
	switch p.format {
	case formatDockerArchive:
		if p.name == "" {
			return archive.NewReference(path, nil)
		}
		return archive.ParseReference(path + ":" + p.name)
	case formatDirectory:
		return directory.NewReference(path)
	}
	return layout.NewReference(path, p.name)
}

// stageDir is the directory that stages for a place are made in. It is the layout itself if that exists, because it may be a
// mount point under a directory that cannot be written.
func (p place) stageDir() (string, error) {
	info, err := lstatOutput(p.path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", p, err)
	}
	if p.format == formatOCI && info != nil {
		if !info.IsDir() {
			return "", fmt.Errorf("%s: %s is not a directory", p, p.path)
		}
		sweepBeside(p.path)
		return filepath.Clean(p.path), nil
	}
	return filepath.Dir(filepath.Clean(p.path)), nil
}
