package render

import (
	"errors"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Errors on which callers decide.
var (
	// ErrNotAllowed is returned for a reference of a kind that is not among [Options.Allow].
	ErrNotAllowed = errors.New("not allowed")
	// ErrNotBundle is returned if a reference that must be a bundle names something else.
	ErrNotBundle = errors.New("not a bundle")
	// ErrFileType reports a file that is not a database.
	ErrFileType = errors.New("unsupported file type")
	// ErrPlatformsDiffer is returned for an image whose content differs between platforms.
	ErrPlatformsDiffer = fault.New(fault.Input, "the platforms of the image have different catalogs")
)
