package serve

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// cacheCheck is the result of comparing a cache with its catalog.
type cacheCheck struct {
	fresh   map[string]*Package
	build   []string        // the files to build from, sorted
	dirty   map[string]bool // those with a content that no cache file has as source
	reasons []string        // why the cache does not match
}

// check compares the cache with the catalog's files by digest, without parsing them.
func (l *loader) check(ctx context.Context, cache *cacheDir) (*cacheCheck, error) {
	files, err := declcfg.Files(l.src.fsys)
	if err != nil {
		return nil, err
	}
	c := &cacheCheck{fresh: map[string]*Package{}, dirty: map[string]bool{}}
	for _, err := range cache.errors() {
		c.reasons = append(c.reasons, err.Error())
	}
	there := make(map[string]bool, len(files))
	for _, f := range files {
		there[f] = true
	}
	listed := map[string]bool{}
	for _, p := range cache.packages {
		for _, s := range p.sources {
			listed[s.Name] = true
		}
	}
	now, err := digestFiles(ctx, l.src.fsys,
		slices.DeleteFunc(sortedNames(listed), func(f string) bool { return !there[f] }))
	if err != nil {
		return nil, err
	}
	// A file is known if all packages with blobs in it have it as an unchanged source.
	listings := map[string]int{}
	for _, name := range sortedNames(cache.packages) {
		p := cache.packages[name]
		reason := ""
		for _, s := range p.sources {
			digest, ok := now[s.Name]
			switch {
			case !ok:
				reason = fmt.Sprintf("%s is not there", s.Name)
			case digest.Size != s.Size || digest.Digest != s.Digest:
				reason = fmt.Sprintf("cache reports digest of %s as %q, but computed digest is %q", s.Name,
					shortDigest(s), shortDigest(digest))
			default:
				digest.Packages = s.Packages
				now[s.Name] = digest
				listings[s.Name]++
			}
		}
		if len(p.sources) == 0 {
			reason = "it does not say what it was made of"
		}
		if reason == "" {
			c.fresh[name] = p
		} else {
			c.reasons = append(c.reasons, fmt.Sprintf("package %q: %s", name, reason))
		}
	}
	build := map[string]bool{}
	for _, f := range files {
		if n := listings[f]; n == 0 || n != now[f].Packages {
			if !listed[f] && isBlank(l.src.fsys, f) {
				continue // no cache file lists it, because no package has blobs in it
			}
			c.dirty[f], build[f] = true, true
			if n > 0 || !listed[f] {
				c.reasons = append(c.reasons, fmt.Sprintf("%s is not in the cache", f))
			}
		}
	}
	for name, p := range cache.packages {
		if c.fresh[name] == nil {
			for _, s := range p.sources {
				build[s.Name] = build[s.Name] || there[s.Name]
			}
		}
	}
	for _, f := range sortedNames(build) {
		if build[f] {
			c.build = append(c.build, f)
		}
	}
	return c, nil
}

// isBlank reports whether a file is so small and empty that it certainly has no blob, such as a placeholder that keeps
// a directory in version control.
func isBlank(fsys fs.FS, name string) bool {
	const most = 4 << 10
	if info, err := fs.Stat(fsys, name); err != nil || info.Size() > most {
		return false
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return false // building from it will report the error
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" {
			return false
		}
	}
	return true
}

func shortDigest(s SourceFile) string { return fmt.Sprintf("sha256:%x…", s.Digest[:8]) }

// dropUnfounded drops cached packages that list a source in which, as it turned out, they have no blobs: no builder has
// written such a file.
func (c *cacheCheck) dropUnfounded(built []*Package) {
	for name, p := range c.fresh {
		if slices.ContainsFunc(p.sources, func(s SourceFile) bool { return c.dirty[s.Name] }) &&
			!slices.ContainsFunc(built, func(b *Package) bool { return b.name == name }) {
			delete(c.fresh, name)
		}
	}
}
