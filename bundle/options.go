package bundle

import (
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

var (
	// ErrInvalid is the class of errors about bundles that break a rule of their format.
	ErrInvalid = fault.New(fault.Input, "invalid bundle")
	// ErrLimit is the class of errors about bundles that are larger, deeper or longer than they may be.
	ErrLimit = fault.ErrLimit
)

// ReadOptions configure [Read]. The zero value is useful.
type ReadOptions struct {
	// Labels are those of the image that the bundle is in. They are used for keys that annotations.yaml lacks.
	Labels map[string]string
	// MediaType is used if neither the annotations nor the labels of the bundle name one.
	MediaType MediaType
	// Limits bound what is read.
	Limits Limits
	// Warn, if not nil, is called with each problem as it is found, except those in the error.
	Warn func(Problem)
}

// Limits bound what is read of a bundle. A zero field stands for its default. Sizes are in bytes.
type Limits struct {
	// File bounds one file; 4 MiB by default.
	File int64
	// Total bounds the sum of all files, and that of the objects in them as JSON; 256 MiB by default.
	Total int64
	// Entries bounds the files and directories in manifests and metadata; 10,000 by default.
	Entries int
	// Documents bounds the documents of all files; 10,000 by default.
	Documents int
	// Depth bounds how deep objects and arrays may nest in a document; 100 by default.
	Depth int
}

func (l Limits) withDefaults() Limits {
	if l.File <= 0 {
		l.File = 4 << 20
	}
	if l.Total <= 0 {
		l.Total = 256 << 20
	}
	if l.Entries <= 0 {
		l.Entries = 10_000
	}
	if l.Documents <= 0 {
		l.Documents = 10_000
	}
	if l.Depth <= 0 {
		l.Depth = 100
	}
	return l
}

// ReadError is the error of a bundle that cannot be used: every fatal problem of it, in the order of discovery.
type ReadError struct{ Problems []Problem }

// Error returns the problems, one a line.
func (e *ReadError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns [ErrLimit] if a limit is among the problems, else [ErrInvalid].
func (e *ReadError) Unwrap() error {
	if slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Rule == RuleLimit }) {
		return ErrLimit
	}
	return ErrInvalid
}
