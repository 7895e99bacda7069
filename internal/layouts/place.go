package layouts

import (
	"fmt"
	"path/filepath"
)

// Format is how an image is kept in files, as the containers tools write it before the colon.
type Format string

const (
	OCI           Format = "oci"
	OCIArchive    Format = "oci-archive"
	DockerArchive Format = "docker-archive"
	Directory     Format = "dir"
)

// Place is an image in files.
type Place struct {
	Format Format
	// Path is the directory or the file.
	Path string
	// Name chooses an image in a layout or an archive: a tag or a reference, and for reading also "@" and the number of
	// the image. It may be empty.
	Name string
}

// String returns the place as users write it.
func (p Place) String() string {
	if p.Name == "" {
		return string(p.Format) + ":" + p.Path
	}
	return string(p.Format) + ":" + p.Path + ":" + p.Name
}

// StageDir returns the directory for the stages of a place. It is the layout itself if that exists, since it may be a
// mount point in a directory without write permission.
func (p Place) StageDir() (string, error) {
	info, err := LstatOutput(p.Path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", p, err)
	}
	if p.Format == OCI && info != nil {
		if !info.IsDir() {
			return "", fmt.Errorf("%s: %s is not a directory", p, p.Path)
		}
		SweepBeside(p.Path)
		return filepath.Clean(p.Path), nil
	}
	return filepath.Dir(filepath.Clean(p.Path)), nil
}
