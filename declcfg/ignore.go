package declcfg

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// IgnoreFile is the name of the files that exclude files of a catalog directory from the catalog. They have the syntax
// of .gitignore; their patterns are relative to the directory that they are in.
const IgnoreFile = ".indexignore"

// Bounds of one ignore file.
const (
	maxIgnoreFile     = 1 << 20 // bytes
	maxIgnorePatterns = 10_000
	maxAllPatterns    = 400_000 // of all ignore files of a catalog
	maxPatternParts   = 64      // path elements of one pattern
)

// ignorer decides which files are ignored. Unlike git it looks at files only: a later pattern can bring back a file
// from a directory that an earlier one ignores.
type ignorer struct {
	patterns []ignorePattern // in the order of reading: the last that matches decides
}

type ignorePattern struct {
	dir      []string // the directory of the ignore file
	parts    []string
	include  bool // "!pattern"
	dirOnly  bool // "pattern/"
	anchored bool // a slash within the pattern: it holds from dir on, else at any depth
}

// read adds the patterns of the ignore file in dir, if there is one.
func (ig *ignorer) read(fsys fs.FS, dir string) error {
	name := path.Join(dir, IgnoreFile)
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile+1))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxIgnoreFile {
		return fmt.Errorf("%s: %w: larger than %d bytes", name, ErrLimit, maxIgnoreFile)
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return fmt.Errorf("%s: not UTF-8 text", name)
	}
	var at []string
	if dir != "." {
		at = strings.Split(dir, "/")
	}
	count := 0
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if count++; count > maxIgnorePatterns {
			return fmt.Errorf("%s: %w: more than %d patterns", name, ErrLimit, maxIgnorePatterns)
		}
		if len(ig.patterns) == maxAllPatterns {
			return fmt.Errorf("%s: %w: more than %d patterns in all ignore files", name, ErrLimit, maxAllPatterns)
		}
		p, err := parseIgnorePattern(line, at)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		ig.patterns = append(ig.patterns, p)
	}
	return nil
}

func parseIgnorePattern(line string, dir []string) (ignorePattern, error) {
	p := ignorePattern{dir: dir}
	if line, p.include = strings.CutPrefix(line, "!"); p.include && line == "" {
		return p, fmt.Errorf("empty pattern")
	}
	line, p.dirOnly = strings.CutSuffix(line, "/")
	p.anchored = strings.Contains(line, "/")
	p.parts = strings.Split(strings.TrimPrefix(line, "/"), "/")
	if len(p.parts) > maxPatternParts {
		return p, fmt.Errorf("pattern of more than %d path elements", maxPatternParts)
	}
	return p, nil
}

// ignores reports whether the file of that slash-separated name is ignored.
func (ig *ignorer) ignores(name string) bool {
	if len(ig.patterns) == 0 {
		return false
	}
	parts := strings.Split(name, "/")
	for i := len(ig.patterns) - 1; i >= 0; i-- {
		if p := &ig.patterns[i]; p.matches(parts) {
			return !p.include
		}
	}
	return false
}

func (p *ignorePattern) matches(name []string) bool {
	if len(name) <= len(p.dir) {
		return false
	}
	for i, d := range p.dir {
		if name[i] != d {
			return false
		}
	}
	name = name[len(p.dir):]
	if !p.anchored {
		for i, element := range name {
			if matchElement(p.parts[0], element) && !(p.dirOnly && i == len(name)-1) {
				return true
			}
		}
		return false
	}
	return p.matchesPath(name)
}

// matchesPath matches the pattern against the file or any directory above it, in time of the product of both lengths:
// at[i] says that parts[i:] is what the rest of the name has to match.
func (p *ignorePattern) matchesPath(name []string) bool {
	last := len(p.parts) - 1
	at := make([]bool, len(p.parts)+1)
	next := make([]bool, len(p.parts)+1)
	enter := func(states []bool, i int) {
		// "**" before other parts may stand for no directory at all.
		for states[i] = true; i < last && p.parts[i] == "**"; i++ {
			states[i+1] = true
		}
	}
	enter(at, 0)
	for j, element := range name {
		clear(next)
		for i, part := range p.parts {
			switch {
			case !at[i]:
			case part == "**":
				enter(next, i)
				if i == last {
					next[i+1] = true
				}
			case matchElement(part, element):
				enter(next, i+1)
			}
		}
		if next[len(p.parts)] && !(p.dirOnly && j == len(name)-1) {
			return true
		}
		at, next = next, at
	}
	return false
}

func matchElement(pattern, element string) bool {
	ok, err := path.Match(pattern, element)
	return ok && err == nil
}
