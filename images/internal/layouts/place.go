package layouts

import (
	"fmt"
	"path/filepath"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
)

// isLayout tells whether the images of a place are in an OCI layout.
func isLayout(p transport.Destination) bool {
	return p.Transport == transport.OCI || p.Transport == transport.OCIArchive
}

// notLayout is the error of a place whose images are in no OCI layout.
func notLayout(p transport.Destination) error {
	return fmt.Errorf("%w: %s is no OCI layout", fault.ErrInvalid, p)
}

// StageDir returns the directory for the stages of a place. It is the layout itself if that exists, since it may be a
// mount point in a directory without write permission.
func StageDir(p transport.Destination) (string, error) {
	info, err := LstatOutput(p.Path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", p, err)
	}
	if p.Transport == transport.OCI && info != nil {
		if !info.IsDir() {
			return "", fmt.Errorf("%s: %s is not a directory", p, p.Path)
		}
		SweepBeside(p.Path)
		return filepath.Clean(p.Path), nil
	}
	return filepath.Dir(filepath.Clean(p.Path)), nil
}
