package imagefs

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/memfs"
)

// Tree is a read-only file system with the extracted files. Modes are 0644 and 0755, times the zero time.
// It is safe for concurrent use until it is closed.
type Tree struct {
	heap  *heap
	nodes map[string]*node

	// While layers are read from the top: the names that upper layers hide.
	removed map[string]bool
	opaque  map[string]bool
	upper   map[string]bool // names of upper layers: true for directories
}

var (
	_ fs.ReadDirFS = (*Tree)(nil)
	_ fs.StatFS    = (*Tree)(nil)
)

// node is a file or a directory.
type node struct {
	memfs.Info
	content io.ReaderAt
	entries []fs.DirEntry
}

func newTree(h *heap) *Tree {
	return &Tree{
		heap:    h,
		nodes:   map[string]*node{".": {Info: memfs.Dir(".")}},
		removed: map[string]bool{}, opaque: map[string]bool{}, upper: map[string]bool{},
	}
}

// covered tells whether upper layers hide a name of the layer that is being read. It checks the name and each directory
// above it once.
func (t *Tree) covered(name string) bool {
	if dir, above := t.upper[name]; above && !dir || t.removed[name] {
		return true
	}
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		p := name[:i]
		if dir, above := t.upper[p]; above && !dir || t.opaque[p] || t.removed[p] {
			return true
		}
	}
	return t.opaque[""]
}

// isHidden tells whether upper layers hide a name and everything below it: they have a file there or above it, or have
// removed or replaced it. The name of the root is empty.
func (t *Tree) isHidden(name string) bool {
	if name == "" {
		return t.opaque[""]
	}
	return t.opaque[name] || t.covered(name)
}

// cover adds a layer that has been read to the upper layers.
func (t *Tree) cover(l *layerNames) {
	for name, kind := range l.kinds {
		if _, known := t.upper[name]; !known {
			t.upper[name] = kind == tar.TypeDir
		}
	}
	for _, r := range l.removed {
		t.removed[r] = true
	}
	for _, o := range l.opaque {
		t.opaque[o] = true
	}
}

// addDir adds a directory, unless it exists.
func (t *Tree) addDir(name string) error {
	for p := name; p != "."; p = path.Dir(p) {
		n, ok := t.nodes[p]
		if ok && !n.IsDir() {
			return fmt.Errorf("%w: %.200q is below the file %.200q", fault.ErrInvalid, name, p)
		}
		if ok {
			return nil
		}
		t.nodes[p] = &node{Info: memfs.Dir(path.Base(p))}
	}
	return nil
}

// addFile adds a file, unless an upper layer has a directory of that name.
func (t *Tree) addFile(name string, size int64, r io.Reader) error {
	if _, ok := t.nodes[name]; ok {
		return nil
	}
	if t.upper[name] {
		return nil
	}
	if err := t.addDir(path.Dir(name)); err != nil {
		return err
	}
	content, err := t.heap.put(r, size)
	if err != nil {
		return fmt.Errorf("%.200q: %w", name, err)
	}
	t.nodes[name] = &node{Info: memfs.File(path.Base(name), size), content: content}
	return nil
}

// seal makes the listings of the directories.
func (t *Tree) seal() {
	for name, n := range t.nodes {
		if name == "." {
			continue
		}
		parent := t.nodes[path.Dir(name)]
		parent.entries = append(parent.entries, fs.FileInfoToDirEntry(n))
	}
	for _, n := range t.nodes {
		slices.SortFunc(n.entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	t.removed, t.opaque, t.upper = nil, nil, nil
}

// Close releases the memory and the temporary file.
func (t *Tree) Close() error {
	t.nodes = nil
	return t.heap.close()
}

// Open implements [fs.FS].
func (t *Tree) Open(name string) (fs.File, error) {
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.IsDir() {
		return memfs.OpenDir(n, n.entries), nil
	}
	return &openFile{io.NewSectionReader(n.content, 0, n.Size()), n}, nil
}

// ReadDir implements [fs.ReadDirFS].
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	return slices.Clone(n.entries), nil
}

// Stat implements [fs.StatFS].
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	n, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (t *Tree) find(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if n, ok := t.nodes[name]; ok {
		return n, nil
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// openFile is a file that is being read.
type openFile struct {
	*io.SectionReader
	node *node
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openFile) Close() error               { return nil }

// layerNames are the relevant names of one layer. Two entries that readers could combine differently are an error.
type layerNames struct {
	kinds   map[string]byte // types of wanted entries and those above them
	removed []string
	opaque  []string
}

func (l *layerNames) add(name string, kind byte) error {
	if was, twice := l.kinds[name]; twice {
		if was == tar.TypeDir && kind == tar.TypeDir {
			return nil
		}
		return fmt.Errorf("%w: %.200q appears twice", fault.ErrInvalid, name)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if k, ok := l.kinds[dir]; ok && k != tar.TypeDir {
			return fmt.Errorf("%w: %.200q is below the file %.200q", fault.ErrInvalid, name, dir)
		} else if !ok {
			l.kinds[dir] = tar.TypeDir
		}
	}
	l.kinds[name] = kind
	return nil
}
