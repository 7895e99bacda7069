package bundle

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
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
	// AnyProperties accepts declared properties that no catalog can hold, with an error in [Bundle.Problems], if they can
	// be rendered: opm renders them.
	AnyProperties bool
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
type ReadError struct {
	Problems []Problem
	// More is the number of other problems.
	More int
	// Passed says which files were passed over and why: what a problem finds missing may be in them.
	Passed []Problem
}

// Error returns the problems and what was passed over, one per line.
func (e *ReadError) Error() string {
	return strings.Join(problem.Lines(slices.Concat(e.Problems, e.Passed), e.More, Problem.String), "\n")
}

// Has reports whether the text of the error has a problem.
func (e *ReadError) Has(p Problem) bool {
	return slices.Contains(e.Problems, p) || slices.Contains(e.Passed, p)
}

// Below returns the error with its files below a directory.
func (e *ReadError) Below(dir string) *ReadError {
	below := func(list []Problem) []Problem {
		list = slices.Clone(list)
		for i := range list {
			list[i].File = filepath.Join(dir, filepath.FromSlash(list[i].File))
		}
		return list
	}
	return &ReadError{below(e.Problems), e.More, below(e.Passed)}
}

// passedOver returns the problems about files that were passed over, or parts of them.
func passedOver(all []Problem) (out []Problem) {
	for _, p := range all {
		switch p.Rule {
		case RuleSyntax, RuleFile, RuleDirectory, RuleDocuments, RuleCSVSecond, RuleAnnotations, RuleAnnotationsTwo:
			if len(out) < problem.Most {
				out = append(out, p)
			}
		}
	}
	return out
}

// Unwrap returns [ErrLimit] if a limit is among the problems, else [ErrInvalid].
func (e *ReadError) Unwrap() error {
	if slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Rule == RuleLimit }) {
		return ErrLimit
	}
	return ErrInvalid
}
