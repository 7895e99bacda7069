package gitrepo

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/memfs"
)

// Base is the commit that a pull request is compared with.
type Base struct {
	r      *Repository
	commit *object.Commit
}

// Base returns the merge base of a revision and HEAD. A revision is a branch, a tag, a branch of a remote, a hash, which
// may be abbreviated, or one of these followed by "~N" and "^N".
func (r *Repository) Base(ctx context.Context, rev string) (*Base, error) {
	base, err := r.commit(rev)
	if err != nil {
		return nil, err
	}
	head, err := r.commit("HEAD")
	if err != nil {
		return nil, err
	}
	common, err := r.mergeBase(ctx, base, head)
	if err != nil {
		return nil, fmt.Errorf("the merge base of %s and HEAD: %w", fault.Quote(rev), err)
	}
	return &Base{r, common}, nil
}

// Commit returns the hash of the commit, in hexadecimal.
func (b *Base) Commit() string { return b.commit.Hash.String() }

// newestFirst is a heap of commits.
type newestFirst []*object.Commit

func (h newestFirst) Len() int           { return len(h) }
func (h newestFirst) Less(i, j int) bool { return h[i].Committer.When.After(h[j].Committer.When) }
func (h newestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *newestFirst) Push(c any)        { *h = append(*h, c.(*object.Commit)) }
func (h *newestFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// mergeBase goes back from both commits, the newest commit first, until all that is left is known to come before a common
// one. Of several common ones it returns the newest.
func (r *Repository) mergeBase(ctx context.Context, a, b *object.Commit) (*object.Commit, error) {
	const fromA, fromB, both, below = 1, 2, 3, 4
	flags, cut := map[plumbing.Hash]int{a.Hash: fromA}, false
	flags[b.Hash] |= fromB
	queue, waiting := newestFirst{a}, 1 // of which are not below a common one
	if b.Hash != a.Hash {
		heap.Push(&queue, b)
		waiting++
	}
	var common []*object.Commit
	for waiting > 0 {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		c := heap.Pop(&queue).(*object.Commit)
		f := flags[c.Hash]
		if f&below == 0 {
			waiting--
			if f == both {
				common = append(common, c)
				f |= below
			}
		}
		if r.shallow[c.Hash] {
			cut = true
			continue
		}
		for _, h := range c.ParentHashes {
			before := flags[h]
			if before|f == before {
				continue
			}
			flags[h] = before | f
			i := slices.IndexFunc(queue, func(q *object.Commit) bool { return q.Hash == h })
			if i < 0 {
				parent := &object.Commit{}
				if err := r.decode(h, "a parent of commit "+c.Hash.String(), parent); err != nil {
					return nil, err
				}
				heap.Push(&queue, parent)
			}
			if was, is := i >= 0 && before&below == 0, f&below == 0 && before&below == 0; is && !was {
				waiting++
			} else if was && !is {
				waiting--
			}
		}
	}
	for _, c := range common { // the newest first
		if flags[c.Hash]&below == 0 {
			return c, nil
		}
	}
	err := fmt.Errorf("%w: they have no commit in common", fault.ErrInvalid)
	if cut {
		err = fault.Advise(fmt.Errorf("%w in this shallow clone", err),
			`Fetch more commits: "git fetch --unshallow", or "git fetch --deepen=100".`)
	}
	return nil, err
}

// FS returns the files of the commit, which are read when they are opened, within [bundlefs.MaxFile]. It implements
// [fs.ReadDirFS] and [fs.StatFS]. Symbolic links are files of that type, and are not followed; submodules are of the
// type [fs.ModeIrregular]. It may be used concurrently.
func (b *Base) FS() fs.FS { return treeFS{b.r, b.commit.TreeHash} }

type treeFS struct {
	r    *Repository
	root plumbing.Hash
}

// find returns the entry of a name.
func (t treeFS) find(name string) (object.TreeEntry, error) {
	e := object.TreeEntry{Name: ".", Mode: filemode.Dir, Hash: t.root}
	if !fs.ValidPath(name) {
		return e, fs.ErrInvalid
	}
	if name == "." {
		return e, nil
	}
	parts := strings.Split(name, "/")
	if len(parts) > maxDepth {
		return e, fs.ErrNotExist
	}
	for i, part := range parts {
		if e.Mode != filemode.Dir {
			return e, fs.ErrNotExist
		}
		tree, err := t.r.tree(e.Hash, path.Join(parts[:i]...))
		if err != nil {
			return e, err
		}
		j := slices.IndexFunc(tree.Entries, func(e object.TreeEntry) bool { return e.Name == part })
		if j < 0 {
			return e, fs.ErrNotExist
		}
		e = tree.Entries[j]
	}
	return e, nil
}

// info describes an entry. The size of a file is read from its object.
func (t treeFS) info(e object.TreeEntry) (memfs.Info, error) {
	info := memfs.Info{Base: e.Name, Kind: mode(e.Mode)}
	if e.Mode == filemode.Dir || e.Mode == filemode.Submodule {
		return info, nil
	}
	var err error
	info.Bytes, err = t.r.size(e.Hash)
	return info, err
}

func mode(m filemode.FileMode) fs.FileMode {
	switch m {
	case filemode.Dir:
		return fs.ModeDir | 0o755
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	case filemode.Submodule:
		return fs.ModeIrregular
	case filemode.Executable:
		return 0o755
	}
	return 0o644
}

func (t treeFS) Stat(name string) (fs.FileInfo, error) {
	e, err := t.find(name)
	if err == nil {
		var info memfs.Info
		if info, err = t.info(e); err == nil {
			return info, nil
		}
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
}

func (t treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := t.find(name)
	if err == nil && e.Mode != filemode.Dir {
		err = errors.New("not a directory")
	}
	var tree *object.Tree
	if err == nil {
		tree, err = t.r.tree(e.Hash, name)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	list := make([]fs.DirEntry, len(tree.Entries))
	for i, e := range tree.Entries {
		list[i] = dirEntry{t, e}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

type dirEntry struct {
	t treeFS
	e object.TreeEntry
}

func (d dirEntry) Name() string               { return d.e.Name }
func (d dirEntry) IsDir() bool                { return d.e.Mode == filemode.Dir }
func (d dirEntry) Type() fs.FileMode          { return mode(d.e.Mode).Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.t.info(d.e) }

func (t treeFS) Open(name string) (fs.File, error) {
	e, err := t.find(name)
	if err == nil && e.Mode == filemode.Dir {
		list, err := t.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return memfs.OpenDir(memfs.Dir(e.Name), list), nil
	}
	if err == nil && !mode(e.Mode).IsRegular() {
		err = errors.New("is not a regular file")
	}
	var text []byte
	if err == nil {
		text, err = t.r.blob(e.Hash, bundlefs.MaxFile, name)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{bytes.NewReader(text), memfs.Info{Base: e.Name, Bytes: int64(len(text)), Kind: mode(e.Mode)}}, nil
}

type file struct {
	io.ReadSeeker
	info memfs.Info
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }
