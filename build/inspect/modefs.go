package inspect

import (
	"io/fs"
	"path"

	"github.com/operator-bindery/bindery/images"
)

// modeFS wraps a part of an image's file tree and returns the modes recorded in the image: digests of opm's caches
// depend on them.
type modeFS struct {
	tree *images.Tree
	v    *view
	dir  string
}

var (
	_ fs.ReadDirFS = modeFS{}
	_ fs.StatFS    = modeFS{}
)

func (m modeFS) join(name string) string { return path.Join(m.dir, name) }

// Open implements [fs.FS].
func (m modeFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := m.tree.Open(m.join(name))
	if err != nil {
		return nil, err
	}
	return modeFile{f, m.mode(name)}, nil
}

// Stat implements [fs.StatFS].
func (m modeFS) Stat(name string) (fs.FileInfo, error) {
	info, err := m.tree.Stat(m.join(name))
	if err != nil {
		return nil, err
	}
	return modeInfo{info, m.mode(name)}, nil
}

// ReadDir implements [fs.ReadDirFS].
func (m modeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := m.tree.ReadDir(m.join(name))
	if err != nil {
		return nil, err
	}
	for n, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		entries[n] = fs.FileInfoToDirEntry(modeInfo{info, m.mode(path.Join(name, e.Name()))})
	}
	return entries, nil
}

// mode returns the permission bits of a name.
func (m modeFS) mode(name string) fs.FileMode {
	n := m.v.find(m.join(name))
	if n == nil {
		return 0
	}
	mode := fs.FileMode(n.e.mode & 0o777)
	if n.e.mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// modeFile is an open file of a modeFS.
type modeFile struct {
	fs.File
	mode fs.FileMode
}

func (f modeFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return modeInfo{info, f.mode}, nil
}

// ReadAt implements [io.ReaderAt] if the underlying file does.
func (f modeFile) ReadAt(p []byte, at int64) (int, error) {
	r, ok := f.File.(interface {
		ReadAt([]byte, int64) (int, error)
	})
	if !ok {
		return 0, &fs.PathError{Op: "read", Err: fs.ErrInvalid}
	}
	return r.ReadAt(p, at)
}

// modeInfo is a file's description with the mode replaced.
type modeInfo struct {
	fs.FileInfo
	mode fs.FileMode
}

func (i modeInfo) Mode() fs.FileMode { return i.FileInfo.Mode().Type() | i.mode }
