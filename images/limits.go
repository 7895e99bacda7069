package images

import "errors"

// ErrInvalid is the class of errors about input that breaks a rule of its format.
var ErrInvalid = errors.New("invalid")

// ErrLimit is the class of errors about input that is bigger than it may be.
var ErrLimit = errors.New("limit exceeded")

// ErrIntegrity is the class of errors about content that is not what its digest or size says.
var ErrIntegrity = errors.New("integrity")

// Limits that are no option: no real image comes near them.
const (
	maxManifest     = 4 << 20
	maxIndexEntries = 1000
	maxIndexDepth   = 4
	maxLayers       = 512
)
