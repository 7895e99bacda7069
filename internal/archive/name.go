package archive

import (
	"archive/tar"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/printable"
)

// EntryName returns the clean, relative name of an archive's entry; "." for the root.
func EntryName(h *tar.Header) (string, error) {
	name := h.Name
	switch {
	case !utf8.ValidString(name):
		return "", fmt.Errorf("%w: name %.200q is not UTF-8", fault.ErrInvalid, name)
	case !printable.NoControl(name):
		return "", fmt.Errorf("%w: control characters in the name %.200q", fault.ErrInvalid, name)
	case strings.HasPrefix(name, "/"):
		return "", fmt.Errorf("%w: absolute path %.200q", fault.ErrInvalid, name)
	case len(name) > limit.MaxPath:
		return "", fmt.Errorf("%w: %.80q...: path longer than %d bytes", fault.ErrLimit, name, limit.MaxPath)
	}
	depth := 0
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return "", fmt.Errorf("%w: %.200q: path leaves the image root", fault.ErrInvalid, name)
		case len(part) > limit.MaxComponent:
			return "", fmt.Errorf("%w: %.80q...: name longer than %d bytes", fault.ErrLimit, part, limit.MaxComponent)
		case part != "" && part != ".":
			depth++
		}
	}
	if depth > limit.MaxDepth {
		return "", fmt.Errorf("%w: %.200q: more than %d directories deep", fault.ErrLimit, name, limit.MaxDepth)
	}
	return path.Clean(name), nil
}

// CleanPath makes a path relative to the root of the image, as from a label; the root itself is empty. A path with a
// component ".." or a control character is an error of the class [fault.ErrInvalid], one that is longer or deeper than
// any file of the class [fault.ErrLimit].
func CleanPath(name string) (string, error) {
	if len(name) > limit.MaxWantedPath || strings.Count(name, "/") > limit.MaxWantedDepth {
		return "", fmt.Errorf("%w: path %.80q... has %d bytes (limit %d) and %d slashes (limit %d)",
			fault.ErrLimit, name, len(name), limit.MaxWantedPath, strings.Count(name, "/"), limit.MaxWantedDepth)
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", fmt.Errorf("%w: path %.200q leaves the image root", fault.ErrInvalid, name)
	}
	if !printable.NoControl(name) {
		return "", fmt.Errorf("%w: control characters in the path %.200q", fault.ErrInvalid, name)
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}

// IsSparse tells whether an entry is a sparse file, whose size is not that of its stored content.
func IsSparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}
