package submission

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/gitrepo"
)

// previous has the files before a change of which only the list is known: without the contents of those that are deleted.
// Files of which the kind of change is not known, and that exist, count as new.
type previous struct {
	fs.FS
	added map[string]bool
	// below are the directories of files that change, deleted those of files that are deleted, each with what was in it.
	below   map[string]bool
	deleted map[string]map[string]bool
}

func newPrevious(now fs.FS, changes []gitrepo.Change) *previous {
	p := &previous{now, map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}}
	for _, c := range changes {
		_, err := fs.Stat(now, c.Path)
		gone := c.Kind == gitrepo.Deleted || c.Kind == gitrepo.Unknown && err != nil
		if !gone && c.Kind != gitrepo.Modified {
			p.added[c.Path] = true
		}
		for name := c.Path; name != "."; name = path.Dir(name) {
			dir := path.Dir(name)
			if p.below[dir] = true; !gone {
				continue
			}
			if p.deleted[dir] == nil {
				p.deleted[dir] = map[string]bool{}
			}
			p.deleted[dir][path.Base(name)] = true
		}
	}
	return p
}

// Open opens a file that is not new.
func (p *previous) Open(name string) (fs.File, error) {
	if p.added[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return p.FS.Open(name)
}

// Stat describes a file or directory.
func (p *previous) Stat(name string) (fs.FileInfo, error) {
	if len(p.deleted[name]) > 0 || p.deleted[path.Dir(name)][path.Base(name)] {
		return entryBefore{path.Base(name), len(p.deleted[name]) > 0}, nil
	}
	if p.added[name] {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	info, err := fs.Stat(p.FS, name)
	if err == nil && info.IsDir() && p.below[name] {
		entries, err := p.ReadDir(name)
		if err != nil || len(entries) == 0 {
			return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
		}
	}
	return info, err
}

// ReadDir lists a directory.
func (p *previous) ReadDir(name string) (out []fs.DirEntry, err error) {
	entries, err := fs.ReadDir(p.FS, name)
	if err != nil && len(p.deleted[name]) == 0 {
		return nil, err
	}
	for _, e := range entries {
		child := path.Join(name, e.Name())
		if _, err := p.Stat(child); err == nil && !p.deleted[name][e.Name()] {
			out = append(out, e)
		}
	}
	for child := range p.deleted[name] {
		out = append(out, fs.FileInfoToDirEntry(entryBefore{child, len(p.deleted[path.Join(name, child)]) > 0}))
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// entryBefore is a file or a directory that is deleted.
type entryBefore struct {
	name string
	dir  bool
}

func (e entryBefore) Name() string       { return e.name }
func (e entryBefore) Size() int64        { return 0 }
func (e entryBefore) ModTime() time.Time { return time.Time{} }
func (e entryBefore) IsDir() bool        { return e.dir }
func (e entryBefore) Sys() any           { return nil }
func (e entryBefore) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
