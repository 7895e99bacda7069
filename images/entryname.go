package images

import (
	"archive/tar"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// entryName is the clean, relative name of an archive's entry; "." for the root.
func entryName(h *tar.Header) (string, error) {
	name := h.Name
	switch {
	case !utf8.ValidString(name):
		return "", fmt.Errorf("%w: name %.200q is not UTF-8", ErrInvalid, name)
	case !validText(name):
		return "", fmt.Errorf("%w: control characters in the name %.200q", ErrInvalid, name)
	case strings.HasPrefix(name, "/"):
		return "", fmt.Errorf("%w: absolute path %.200q", ErrInvalid, name)
	case len(name) > maxPath:
		return "", fmt.Errorf("%w: %.80q...: path longer than %d bytes", ErrLimit, name, maxPath)
	}
	depth := 0
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return "", fmt.Errorf("%w: %.200q: path leaves the image root", ErrInvalid, name)
		case len(part) > maxComponent:
			return "", fmt.Errorf("%w: %.80q...: name longer than %d bytes", ErrLimit, part, maxComponent)
		case part != "" && part != ".":
			depth++
		}
	}
	if depth > maxDepth {
		return "", fmt.Errorf("%w: %.200q: more than %d directories deep", ErrLimit, name, maxDepth)
	}
	return path.Clean(name), nil
}

// CleanPath makes a path that an image names, in a label say, relative to the root of the image; the root itself is
// empty. A path with a component ".." or a control character fails with [ErrInvalid], one that is longer or deeper than
// any file can be with [ErrLimit].
func CleanPath(name string) (string, error) {
	if len(name) > maxWantedPath || strings.Count(name, "/") > maxWantedDepth {
		return "", fmt.Errorf("%w: path %.80q... has %d bytes (limit %d) and %d slashes (limit %d)",
			ErrLimit, name, len(name), maxWantedPath, strings.Count(name, "/"), maxWantedDepth)
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", fmt.Errorf("%w: path %.200q leaves the image root", ErrInvalid, name)
	}
	if !validText(name) {
		return "", fmt.Errorf("%w: control characters in the path %.200q", ErrInvalid, name)
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}

// validText tells whether a name can be shown and be a file's name everywhere.
func validText(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) })
}

// isSparse tells whether an entry claims to be longer than what is stored of it.
func isSparse(h *tar.Header) bool {
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

// layerNames are the names of one layer that matter: no two entries may make different readers see different trees.
type layerNames struct {
	kinds   map[string]byte // of wanted names and of those above them
	removed []string
	opaque  []string
}

func (l *layerNames) add(name string, kind byte) error {
	if was, twice := l.kinds[name]; twice {
		if was == tar.TypeDir && kind == tar.TypeDir {
			return nil
		}
		return fmt.Errorf("%w: %.200q appears twice", ErrInvalid, name)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if k, ok := l.kinds[dir]; ok && k != tar.TypeDir {
			return fmt.Errorf("%w: %.200q is below the file %.200q", ErrInvalid, name, dir)
		} else if !ok {
			l.kinds[dir] = tar.TypeDir
		}
	}
	l.kinds[name] = kind
	return nil
}
