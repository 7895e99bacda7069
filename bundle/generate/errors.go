package generate

import (
	"errors"
	"fmt"
	"io/fs"
)

// The classes of errors of this package.
var (
	// ErrNotInferred is returned if package or channels were not given and could not be derived.
	ErrNotInferred = errors.New("package and channels could not be inferred")
	// ErrExists is returned for an existing file with other content that must not be replaced.
	ErrExists = fmt.Errorf("%w with other content", fs.ErrExist)
	// ErrMetadata is the class of errors about an annotations.yaml that differs from the given values.
	ErrMetadata = errors.New("annotations.yaml says something else")
)
