package declcfg

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/nearest"
)

// Hint suggests a similar name, or lists the existing ones.
func (e *NotFoundError) Hint() string {
	const few = 10
	known := slices.Compact(slices.Sorted(slices.Values(e.Known)))
	if near, ok := nearest.Name(e.Name, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	switch n := len(known); {
	case n == 0:
		return "there is none"
	case n == 1:
		return "there is only " + known[0]
	case n <= few:
		return "there are " + strings.Join(known, ", ")
	case e.Kind == "package":
		return fmt.Sprintf("\"list packages\" shows all %d", n)
	default:
		return fmt.Sprintf("\"list %ss\" shows them", e.Kind)
	}
}

// Object is the name.
func (e *NotFoundError) Object() string { return e.Name }

// Hint explains how to exclude files that do not belong to a catalog, if problems are in such files: files below
// a hidden directory, as in a checkout, and documents.
func (e *ValidationError) Hint() string {
	for _, problem := range e.Problems {
		file := filepath.ToSlash(problem.Position.File)
		for part := range strings.SplitSeq(file, "/") {
			if part == ".git" || part == ".github" || part == ".svn" || part == ".hg" {
				return fmt.Sprintf(
					"%s is not part of a catalog: add a file %s with the line %q to the directory to exclude it", part,
					IgnoreFile, part)
			}
		}
		if base := path.Base(file); strings.EqualFold(path.Ext(base), ".md") {
			return fmt.Sprintf(
				"every file in the directory is part of the catalog unless a file %s excludes it, with the line %q",
				IgnoreFile, base)
		}
	}
	return ""
}
