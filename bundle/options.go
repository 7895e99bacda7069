package bundle

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

var (
	// ErrInvalid is the class of errors about bundles that break a rule of their format.
	ErrInvalid = fault.New(fault.Input, "invalid bundle")
	// ErrLimit is the class of errors about bundles that exceed a limit.
	ErrLimit = fault.ErrLimit
)

// ReadOptions configure reading a bundle. The zero value is useful.
type ReadOptions struct {
	// Labels are those of the bundle's image. They are used for annotations that annotations.yaml lacks.
	Labels map[string]string
	// MediaType is the media type if neither annotations nor labels declare it.
	MediaType MediaType
	// Limits bound what is read.
	Limits Limits
	// Warn, if not nil, is called with each problem as it is found, except those in the error.
	Warn func(Problem)
}

// Limits bound what is read of a bundle. A zero field means its default. Sizes are in bytes.
type Limits struct {
	// File is the maximum size of one file; 4 MiB by default.
	File int64
	// Total is the maximum size of all files, and of all objects as JSON; 256 MiB by default.
	Total int64
	// Entries is the maximum number of files and directories in manifests and metadata; 10,000 by default.
	Entries int
	// Documents is the maximum number of documents in all files; 10,000 by default.
	Documents int
	// Depth is the maximum nesting of objects and arrays in a document; 100 by default.
	Depth int
}

func (l Limits) withDefaults() Limits {
	l.File = cmp.Or(max(l.File, 0), 4<<20)
	l.Total = cmp.Or(max(l.Total, 0), 256<<20)
	l.Entries = cmp.Or(max(l.Entries, 0), 10_000)
	l.Documents = cmp.Or(max(l.Documents, 0), 10_000)
	l.Depth = cmp.Or(max(l.Depth, 0), 100)
	return l
}

// ReadError has all fatal problems of an unusable bundle, in the order of discovery.
type ReadError struct{ Problems []Problem }

// Error returns the problems, one per line.
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
