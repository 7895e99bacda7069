package bundlefs

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/memfs"
)

// Layout is a bundle composed of directories from elsewhere and of files in memory, which take precedence. Names are
// clean and slash-separated; each file is at the top of one of the directories. The zero value is an empty bundle. It
// is an [fs.FS] and safe for concurrent use if the directories are.
type Layout struct {
	// Dirs are the directories by name; a name has one path element. A nil directory is empty.
	Dirs map[string]fs.FS
	// Files are the contents by name, DIR/FILE.
	Files map[string][]byte
}

var _ fs.ReadDirFS = Layout{}

// Open implements [fs.FS].
func (l Layout) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if content, ok := l.Files[name]; ok {
		return &memoryFile{memfs.File(path.Base(name), int64(len(content))), bytes.NewReader(content)}, nil
	}
	dir, rest, below := strings.Cut(name, "/")
	from, ok := l.Dirs[dir]
	switch {
	case name == "." || ok && !below:
		entries, err := l.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return memfs.OpenDir(memfs.Dir(path.Base(name)), entries), nil
	case !ok || from == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := from.Open(rest)
	return f, inDir(err, dir)
}

// ReadDir implements [fs.ReadDirFS].
func (l Layout) ReadDir(name string) ([]fs.DirEntry, error) {
	var out []fs.DirEntry
	if name == "." {
		for dir := range l.Dirs {
			out = append(out, fs.FileInfoToDirEntry(memfs.Dir(dir)))
		}
		sortEntries(out)
		return out, nil
	}
	dir, rest, below := strings.Cut(name, "/")
	from, ok := l.Dirs[dir]
	if !fs.ValidPath(name) || !ok || from == nil && below {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	if !below {
		rest = "."
	}
	if from != nil {
		entries, err := fs.ReadDir(from, rest)
		if err != nil {
			return nil, inDir(err, dir)
		}
		out = entries
	}
	for file, content := range l.Files {
		if path.Dir(file) != name {
			continue
		}
		out = slices.DeleteFunc(out, func(e fs.DirEntry) bool { return e.Name() == path.Base(file) })
		out = append(out, fs.FileInfoToDirEntry(memfs.File(path.Base(file), int64(len(content)))))
	}
	sortEntries(out)
	return out, nil
}

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}

// inDir replaces the path of an error by that in the bundle.
func inDir(err error, dir string) error {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return err
	}
	return &fs.PathError{Op: p.Op, Path: path.Join(dir, p.Path), Err: p.Err}
}

// memoryFile is an open file in memory.
type memoryFile struct {
	info memfs.Info
	*bytes.Reader
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }
