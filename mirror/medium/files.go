package medium

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// timeFormat is how times are written: RFC 3339 in UTC.
const timeFormat = time.RFC3339

// Files returns the files of the run in the archive, the last one of several: working-dir/... and isc_TIME. Files are
// read in their segments.
func (r *Reader) Files() fs.FS {
	f := &fileSystem{r: r, dirs: map[string][]fs.DirEntry{".": nil}}
	names := make([]string, 0, len(r.files))
	for name := range r.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f.add(name, fileEntry{name: path.Base(name), size: r.files[name].size})
	}
	return f
}

// fileSystem is the tree of the files.
type fileSystem struct {
	r    *Reader
	dirs map[string][]fs.DirEntry // sorted, as the names are added in order of their bytes
}

// add adds an entry and the directories that it is in.
func (f *fileSystem) add(name string, e fileEntry) {
	dir := path.Dir(name)
	if _, known := f.dirs[dir]; !known {
		f.dirs[dir] = nil
		f.add(dir, fileEntry{name: path.Base(dir), dir: true})
	}
	f.dirs[dir] = append(f.dirs[dir], e)
}

// Open opens a file or directory.
func (f *fileSystem) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if entries, ok := f.dirs[name]; ok {
		entries = slices.Clone(entries)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return &openDir{fileEntry{name: path.Base(name), dir: true}, entries}, nil
	}
	s, ok := f.r.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	content, err := f.r.openSpan(s)
	if err != nil {
		return nil, err
	}
	return &openFile{section: content, entry: fileEntry{name: path.Base(name), size: s.size}}, nil
}

// fileEntry is a file or directory of the archive, as [fs.DirEntry] and [fs.FileInfo].
type fileEntry struct {
	name string
	size int64
	dir  bool
}

func (e fileEntry) Name() string               { return e.name }
func (e fileEntry) Size() int64                { return e.size }
func (e fileEntry) IsDir() bool                { return e.dir }
func (e fileEntry) Type() fs.FileMode          { return e.Mode().Type() }
func (e fileEntry) Info() (fs.FileInfo, error) { return e, nil }
func (e fileEntry) ModTime() time.Time         { return time.Unix(0, 0) }
func (e fileEntry) Sys() any                   { return nil }

func (e fileEntry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

type openFile struct {
	section
	entry fileEntry
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.entry, nil }

type openDir struct {
	fileEntry
	rest []fs.DirEntry
}

func (o *openDir) Stat() (fs.FileInfo, error) { return o.fileEntry, nil }
func (o *openDir) Close() error               { return nil }

func (o *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrInvalid}
}

func (o *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(o.rest) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(o.rest) {
		n = len(o.rest)
	}
	list := o.rest[:n:n]
	o.rest = o.rest[n:]
	return list, nil
}
