package medium

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/memfs"
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
		f.add(name, fileInfo(name, r.files[name].size))
	}
	return f
}

// fileSystem is the tree of the files.
type fileSystem struct {
	r    *Reader
	dirs map[string][]fs.DirEntry // sorted, as the names are added in order of their bytes
}

// add adds a file or directory and the directories that it is in.
func (f *fileSystem) add(name string, info memfs.Info) {
	dir := path.Dir(name)
	if _, known := f.dirs[dir]; !known {
		f.dirs[dir] = nil
		f.add(dir, dirInfo(dir))
	}
	f.dirs[dir] = append(f.dirs[dir], fs.FileInfoToDirEntry(info))
}

// Open opens a file or directory.
func (f *fileSystem) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if entries, ok := f.dirs[name]; ok {
		entries = slices.Clone(entries)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return memfs.OpenDir(dirInfo(name), entries), nil
	}
	s, ok := f.r.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	content, err := f.r.openSpan(s)
	if err != nil {
		return nil, err
	}
	return &openFile{section: content, info: fileInfo(name, s.size)}, nil
}

// fileInfo describes a file of the archive.
func fileInfo(name string, size int64) memfs.Info {
	info := memfs.File(path.Base(name), size)
	info.Time = time.Unix(0, 0)
	return info
}

// dirInfo describes a directory of the archive.
func dirInfo(name string) memfs.Info {
	info := memfs.Dir(path.Base(name))
	info.Time = time.Unix(0, 0)
	return info
}

type openFile struct {
	section
	info memfs.Info
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.info, nil }
