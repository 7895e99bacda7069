//go:build !nobuildah

package evaluator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// Limits of an ignore file: every pattern is tried on every path.
const (
	maxIgnore   = 256 << 10 // bytes
	maxPatterns = 10_000
	maxPattern  = 1024 // bytes of one pattern
	// maxTries limits the matching work of one instruction: bytes of patterns tried.
	maxTries = 4 << 30
)

// ignorePatterns reads the ignore file: FILE.containerignore or FILE.dockerignore next to the Containerfile, else
// .containerignore or .dockerignore in the context. file is the path of the Containerfile; empty means to look in the
// context only.
func (d *disk) ignorePatterns(file string) ([]string, error) {
	type try struct {
		stat func(string) (fs.FileInfo, error)
		open func(string) (*os.File, error)
		name string
	}
	tries := []try{{d.root.Stat, d.root.Open, ".containerignore"}, {d.root.Stat, d.root.Open, ".dockerignore"}}
	if file != "" {
		tries = append([]try{{os.Stat, os.Open, file + ".containerignore"}, {os.Stat, os.Open, file + ".dockerignore"}},
			tries...)
	}
	for _, t := range tries {
		info, err := t.stat(t.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s: not a regular file", t.name) // opening a FIFO would wait for a writer
		}
		if err != nil {
			return nil, err
		}
		f, err := t.open(t.name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		text, err := io.ReadAll(io.LimitReader(f, maxIgnore+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if len(text) > maxIgnore {
			return nil, fmt.Errorf("%s: %w: longer than %d bytes", t.name, errLimit, maxIgnore)
		}
		patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
		if err == nil && len(patterns) > maxPatterns {
			err = fmt.Errorf("%w: more than %d patterns", errLimit, maxPatterns)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", t.name, err)
		}
		return patterns, err
	}
	return nil, nil
}

// ignored matches paths against exclusion patterns. The nil value excludes nothing.
type ignored struct {
	m     *patternmatcher.PatternMatcher
	size  int64 // total length of the patterns in bytes
	tries int64
}

func newIgnored(patterns []string) (*ignored, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	if len(patterns) > maxPatterns {
		return nil, fmt.Errorf("%w: more than %d patterns", errLimit, maxPatterns)
	}
	for _, p := range patterns {
		if len(p) > maxPattern {
			return nil, fmt.Errorf("%w: pattern %.40q... has more than %d bytes", errLimit, p, maxPattern)
		}
	}
	m, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, err
	}
	i := &ignored{m: m}
	for _, p := range patterns {
		i.size += int64(len(p)) + 16
	}
	return i, nil
}

// matched is the match state of a directory under its written path and under its resolved path.
type matched struct{ written, real patternmatcher.MatchInfo }

// match reports whether a path is excluded, either as written or with links resolved: a link to an excluded file does
// not include it. above is the state of the parent directory; the returned state is for the entries of the path.
func (i *ignored) match(name, resolved string, above matched) (out bool, info matched, err error) {
	if i == nil || name == "." && resolved == "." {
		return false, matched{}, nil
	}
	if out, info.written, err = i.matchOne(name, above.written); err != nil || name == resolved {
		info.real = info.written
		return out, info, err
	}
	linked, inReal, err := i.matchOne(resolved, above.real)
	info.real = inReal
	return out || linked, info, err
}

func (i *ignored) matchOne(name string, above patternmatcher.MatchInfo) (bool, patternmatcher.MatchInfo, error) {
	if name == "." {
		return false, patternmatcher.MatchInfo{}, nil
	}
	if i.tries += i.size; i.tries > maxTries {
		return false, above, newMendError("use fewer patterns", "%w: patterns of %d bytes for %d paths take too long",
			errLimit, i.size, maxTries/i.size)
	}
	return i.m.MatchesUsingParentResults(name, above)
}

// matchAt is like match, for a path whose parent's state is unknown.
func (i *ignored) matchAt(name, resolved string) (out bool, info matched, err error) {
	if i == nil {
		return false, info, nil
	}
	out, info.written, err = i.matchFromRoot(name)
	if err != nil || name == resolved {
		info.real = info.written
		return out, info, err
	}
	linked, inReal, err := i.matchFromRoot(resolved)
	info.real = inReal
	return out || linked, info, err
}

func (i *ignored) matchFromRoot(name string) (out bool, info patternmatcher.MatchInfo, err error) {
	for at, c := range name {
		if c == '/' {
			if _, info, err = i.matchOne(name[:at], info); err != nil {
				return false, info, err
			}
		}
	}
	return i.matchOne(name, info)
}

// mayIncludeWithin reports whether files in an excluded directory can be included, because a pattern starts with "!".
func (i *ignored) mayIncludeWithin() bool { return i.m.Exclusions() }
