package layers

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// order returns the entries in tar order: every missing parent directory added once, sorted by path with a directory
// before its content, hard links last so that their targets precede them. It fails for names that are not clean,
// repeated, or below something that is not a directory.
func order(entries []Entry) ([]Entry, error) {
	kinds := make(map[string]Kind, 2*len(entries))
	out := make([]Entry, 0, 2*len(entries))
	for _, e := range entries {
		if err := e.checkName(); err != nil {
			return nil, err
		}
		if _, twice := kinds[e.Name]; twice {
			return nil, fmt.Errorf("%q appears twice", e.Name)
		}
		kinds[e.Name] = e.Kind
		out = append(out, e)
	}
	for _, e := range entries {
		for dir := path.Dir(e.Name); dir != "."; dir = path.Dir(dir) {
			kind, known := kinds[dir]
			if known && kind != KindDir {
				return nil, fmt.Errorf("%q is below %q, which is not a directory", e.Name, dir)
			}
			if known {
				continue
			}
			kinds[dir] = KindDir
			out = append(out, Dir(dir, 0o755))
		}
		if e.Kind == KindHardlink {
			if kind, known := kinds[e.Link]; !known || kind != KindFile {
				return nil, fmt.Errorf("hard link %q: no file %q in the layer", e.Name, e.Link)
			}
		}
	}
	slices.SortFunc(out, func(a, b Entry) int {
		if (a.Kind == KindHardlink) != (b.Kind == KindHardlink) {
			if a.Kind == KindHardlink {
				return 1
			}
			return -1
		}
		return comparePaths(a.Name, b.Name)
	})
	return out, nil
}

// comparePaths orders paths component by component: "a/b" before "a-c", so that a directory is followed by its content.
func comparePaths(a, b string) int {
	for {
		ca, ra, moreA := strings.Cut(a, "/")
		cb, rb, moreB := strings.Cut(b, "/")
		if c := cmp.Compare(ca, cb); c != 0 {
			return c
		}
		if !moreA || !moreB {
			return cmp.Compare(len(a), len(b))
		}
		a, b = ra, rb
	}
}
