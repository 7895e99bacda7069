package memfs

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// New returns a read-only file system of files by their names, with the directories that they are in, which dir describes
// by the last elements of their names. Files are read when they are opened. It may be used concurrently if open may.
func New[I fs.FileInfo](files map[string]I, dir func(base string) Info, open func(file I) (io.ReadCloser, error)) fs.FS {
	t := &tree[I]{files, map[string][]fs.DirEntry{".": nil}, dir, open}
	for name, info := range files {
		t.add(name, info)
	}
	for _, list := range t.dirs {
		slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return t
}

type tree[I fs.FileInfo] struct {
	files map[string]I
	dirs  map[string][]fs.DirEntry
	dir   func(base string) Info
	open  func(file I) (io.ReadCloser, error)
}

func (t *tree[I]) add(name string, info fs.FileInfo) {
	parent := path.Dir(name)
	if _, known := t.dirs[parent]; !known {
		t.dirs[parent] = nil
		t.add(parent, t.dir(path.Base(parent)))
	}
	t.dirs[parent] = append(t.dirs[parent], fs.FileInfoToDirEntry(info))
}

func (t *tree[I]) Open(name string) (fs.File, error) {
	if list, ok := t.dirs[name]; ok {
		return OpenDir(t.dir(path.Base(name)), list), nil
	}
	info, ok := t.files[name]
	err := fs.ErrNotExist
	if !fs.ValidPath(name) {
		err = fs.ErrInvalid
	} else if ok {
		var content io.ReadCloser
		if content, err = t.open(info); err == nil {
			return openFile{content, info}, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: err}
}

type openFile struct {
	io.ReadCloser
	info fs.FileInfo
}

func (f openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
