//go:build !nobuildah

package evaluator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// found is one match of a source; its node is never a symbolic link.
type found struct {
	path string // path as written, relative to the root; "." for the root
	real string // path with links resolved; exclusions are matched against both
	n    *node
}

// glob returns the matches of a source in a tree, sorted by name. A source that leads out of the tree is an error;
// links are resolved inside the tree.
func glob(ctx context.Context, root *node, source string) ([]found, error) {
	clean := path.Clean(strings.TrimLeft(source, "/"))
	if source == "" || clean == "" {
		return nil, errors.New("empty source")
	}
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return nil, newMendError("copy what is needed into the context", "%.200q is outside of the context", source)
	}
	if !strings.ContainsAny(clean, `*?[\`) {
		p, err := walk(ctx, root, clean, true, nil)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%.200q does not exist", source)
		}
		if err != nil {
			return nil, err
		}
		return []found{{clean, p.path(), p.node()}}, nil
	}
	if _, err := path.Match(clean, ""); err != nil {
		return nil, fmt.Errorf("%.200q: %w", source, err)
	}
	at := []string{"."}
	m := matching{ctx: ctx, root: root}
	before := ""
	for part := range strings.SplitSeq(clean, "/") {
		if part == "**" && before == "**" {
			continue // the same path
		}
		before = part
		var next []string
		seen := map[string]bool{}
		for _, dir := range at {
			names, err := m.match(dir, part)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if !seen[name] {
					seen[name] = true
					next = append(next, name)
				}
			}
		}
		at = next
	}
	var all []found
	for _, name := range at {
		p, err := walk(ctx, root, name, true, nil)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%.200q is a dangling link", name)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found{name, p.path(), p.node()})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing matches %.200q", source)
	}
	return all, nil
}

// maxLooks is how many names the patterns of one source may be compared with.
const maxLooks = 3_000_000

// matching is the state of matching one source.
type matching struct {
	ctx   context.Context
	root  *node
	looks int
}

// match returns the entries of a directory that match one element of a pattern; "**" matches any number of directories.
func (m *matching) match(dir, part string) ([]string, error) {
	p, err := walk(m.ctx, m.root, dir, true, nil)
	if err != nil || !p.node().isDir() {
		return nil, ignoreMissing(err)
	}
	children, err := p.node().entries(m.ctx)
	if err != nil {
		return nil, err
	}
	if m.looks += len(children); m.looks > maxLooks {
		return nil, newMendError("name the directories", "%w: the pattern was compared with more than %d names", errLimit,
			maxLooks)
	}
	var names []string
	if part == "**" {
		names = append(names, dir)
	}
	for _, name := range sorted(children) {
		full := path.Join(dir, name)
		if part == "**" {
			if children[name].isDir() {
				below, err := m.match(full, part)
				if err != nil {
					return nil, err
				}
				names = append(names, below...)
			}
			continue
		}
		if ok, err := path.Match(part, name); err != nil {
			return nil, err
		} else if ok {
			names = append(names, full)
		}
	}
	return names, nil
}

// ignoreMissing drops the errors of dangling links: a pattern does not match below them.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLinks) {
		return nil
	}
	return err
}
