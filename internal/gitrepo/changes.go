package gitrepo

import (
	"bytes"
	"context"
	"crypto/sha1" // which names objects; nothing relies on it against forgery
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
)

// node is a file or a directory of the work tree.
type node struct {
	name     string
	mode     filemode.FileMode
	hash     plumbing.Hash // as git names the content; unless unhashed
	unhashed bool          // an untracked file, or a directory with one
	children []*node       // of a directory
}

// worktree is the work tree while it is compared.
type worktree struct {
	ctx     context.Context
	r       *Repository
	written time.Time    // of the index
	seen    atomic.Int64 // files and directories
	changes []Change
}

// Changes compares the commit with the work tree: what is committed since, staged or not, and untracked files but ignored
// ones. The result is sorted. Files whose size and time are those in the index are unchanged since they were added to it;
// others are read, without the filters and conversions of .gitattributes. Ignored is what .gitignore files and info/exclude
// say; the user's own file for all repositories is not read. Submodules and nested repositories are not looked into.
func (b *Base) Changes(ctx context.Context) ([]Change, error) {
	w := &worktree{ctx: ctx, r: b.r}
	tracked, err := b.r.store.Index()
	if err != nil {
		return nil, fault.Advise(fmt.Errorf("read the index of the git repository %s: %w: %w", b.r.root, fault.ErrInvalid, err),
			`Write one of a plain form: "git update-index --no-split-index", "git sparse-checkout reapply --no-sparse-index", or "git reset".`)
	}
	for _, e := range tracked.Entries {
		if !local(e.Name) {
			return nil, fmt.Errorf("%w: the index of the git repository %s has an entry named %s", fault.ErrInvalid, b.r.root, fault.Quote(e.Name))
		}
	}
	w.written = tracked.ModTime
	excluded, err := b.r.git.Open("info/exclude")
	var ignored []pattern
	if err == nil {
		ignored, err = patterns("", excluded)
		err = errors.Join(err, excluded.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read info/exclude of the git repository: %w", err)
	}
	top, err := w.walk("", tracked.Entries, ignored, func() bool { return false })
	if err == nil {
		err = w.compare("", b.commit.TreeHash, top)
	}
	if err != nil {
		return nil, fmt.Errorf("compare the work tree %s with commit %s: %w", b.r.root, b.Commit(), err)
	}
	return sorted(w.changes), nil
}

func (w *worktree) file(name string) string { return filepath.Join(w.r.root, filepath.FromSlash(name)) }

// count bounds the work.
func (w *worktree) count(name string, n int) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if w.seen.Add(int64(n)) > maxFiles || strings.Count(name, "/") > maxDepth {
		return fmt.Errorf("%s: %w: more than %d files, or directories nested deeper than %d", fault.Quote(name), fault.ErrLimit, maxFiles, maxDepth)
	}
	return nil
}

// walk returns the directory with a prefix, which is empty or ends with a slash; nil if no file is in it. Tracked are the
// entries of the index with the prefix; out says whether untracked files in it are ignored.
func (w *worktree) walk(prefix string, tracked []*index.Entry, ignored []pattern, out func() bool) (*node, error) {
	list, err := os.ReadDir(w.file(prefix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // one of a sparse checkout need not be there
		return nil, err
	}
	if err := w.count(prefix, len(list)); err != nil {
		return nil, err
	}
	type group struct {
		file  *index.Entry
		below []*index.Entry
	}
	groups := map[string]group{}
	for _, e := range tracked {
		name, _, dir := strings.Cut(e.Name[len(prefix):], "/")
		g := groups[name]
		if dir {
			g.below = append(g.below, e)
		} else {
			g.file = e
		}
		groups[name] = g
	}
	if i, ok := slices.BinarySearchFunc(list, ".gitignore", func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) }); ok && list[i].Type().IsRegular() {
		f, err := os.Open(w.file(prefix + ".gitignore"))
		if err != nil {
			return nil, err
		}
		more, err := patterns(prefix, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		ignored = append(slices.Clip(ignored), more...)
	}
	type directory struct {
		name  string
		below []*index.Entry
		out   func() bool
	}
	var children []*node
	var directories []directory
	for _, d := range list {
		name := prefix + d.Name()
		g := groups[d.Name()]
		delete(groups, d.Name())
		switch {
		case d.Name() == ".git":
		case d.IsDir() && g.file != nil && g.file.Mode == filemode.Submodule:
			children = append(children, &node{name: d.Name(), mode: filemode.Submodule, hash: g.file.Hash})
		case d.IsDir():
			out := sync.OnceValue(func() bool { return out() || match(ignored, name, true) })
			if len(g.below) == 0 {
				if _, err := os.Lstat(w.file(name + "/.git")); err == nil || out() {
					continue // another repository, or ignored
				}
			}
			directories = append(directories, directory{name + "/", g.below, out})
		case !d.Type().IsRegular() && d.Type() != fs.ModeSymlink:
		case g.file != nil || !out() && !match(ignored, name, false):
			n, err := w.leaf(name, d, g.file)
			if err != nil {
				return nil, err
			}
			children = append(children, n)
		}
	}
	for name, g := range groups { // what is tracked and not there, perhaps because the checkout is sparse
		if g.file != nil && g.file.SkipWorktree {
			children = append(children, &node{name: name, mode: g.file.Mode, hash: g.file.Hash})
		}
		if slices.ContainsFunc(g.below, func(e *index.Entry) bool { return e.SkipWorktree }) {
			directories = append(directories, directory{prefix + name + "/", g.below, out})
		}
	}
	nodes := make([]*node, len(directories))
	below := func(_ context.Context, i int, d directory) (err error) {
		nodes[i], err = w.walk(d.name, d.below, ignored, d.out)
		return err
	}
	err = nil
	if strings.Count(prefix, "/") == 1 { // there are many, as of operators
		err = guard.Each(w.ctx, 2*runtime.GOMAXPROCS(0), directories, below)
	} else {
		for i := 0; i < len(directories) && err == nil; i++ {
			err = below(w.ctx, i, directories[i])
		}
	}
	if err != nil {
		return nil, err
	}
	return named(prefix, append(children, nodes...)), nil
}

// named returns a directory with the name that its object has in git, without what is nil.
func named(prefix string, children []*node) *node {
	children = slices.DeleteFunc(children, func(n *node) bool { return n == nil })
	if len(children) == 0 {
		return nil
	}
	base := strings.TrimSuffix(prefix, "/")
	n := &node{name: base[strings.LastIndex(base, "/")+1:], mode: filemode.Dir, children: children}
	order := func(n *node) string {
		if n.mode == filemode.Dir {
			return n.name + "/"
		}
		return n.name
	}
	slices.SortFunc(children, func(a, b *node) int { return strings.Compare(order(a), order(b)) })
	var text bytes.Buffer
	for _, c := range children {
		fmt.Fprintf(&text, "%o %s\x00%s", uint32(c.mode), c.name, c.hash[:])
		n.unhashed = n.unhashed || c.unhashed
	}
	if !n.unhashed {
		n.hash = plumbing.Hash(sha1.Sum(append(fmt.Appendf(nil, "tree %d\x00", text.Len()), text.Bytes()...)))
	}
	return n
}

// leaf returns a file or a symbolic link, with its entry in the index if it is tracked; nil if it vanished.
func (w *worktree) leaf(name string, d fs.DirEntry, e *index.Entry) (*node, error) {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := &node{name: d.Name(), mode: filemode.Regular, unhashed: true}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		n.mode = filemode.Symlink
	case w.r.modes && info.Mode()&0o100 != 0, !w.r.modes && e != nil && e.Mode == filemode.Executable:
		n.mode = filemode.Executable
	}
	if e == nil {
		return n, nil
	}
	unit := time.Nanosecond
	if e.ModifiedAt.Nanosecond() == 0 { // perhaps the index has no fractions
		unit = time.Second
	}
	n.unhashed = false
	if at := e.ModifiedAt.Truncate(unit); e.Stage == 0 && !e.IntentToAdd && e.Size == uint32(info.Size()) && e.Mode == n.mode &&
		at.Equal(info.ModTime().Truncate(unit)) && at.Before(w.written.Truncate(unit)) { // else changed while the index was written
		n.hash = e.Hash
		return n, nil
	}
	n.hash, err = w.hash(name, n.mode)
	return n, err
}

// hash returns the name that git gives to the content of a file.
func (w *worktree) hash(name string, mode filemode.FileMode) (h plumbing.Hash, err error) {
	sum := sha1.New()
	if mode == filemode.Symlink {
		target, err := os.Readlink(w.file(name))
		target = filepath.ToSlash(target)
		fmt.Fprintf(sum, "blob %d\x00%s", len(target), target)
		return plumbing.Hash(sum.Sum(nil)), err
	}
	f, err := os.Open(w.file(name))
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return h, err
	}
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	if n, err := ctxio.Copy(sum, ctxio.Reader{Ctx: w.ctx, R: f}); err != nil || n != info.Size() {
		return h, errors.Join(err, fmt.Errorf("%s has %d bytes, and %d were read", name, info.Size(), n))
	}
	return plumbing.Hash(sum.Sum(nil)), nil
}

// compare adds the changes from a tree, if there is one, to a directory of the work tree, if there is one.
func (w *worktree) compare(prefix string, base plumbing.Hash, n *node) error {
	if n == nil {
		n = &node{unhashed: true}
	}
	if !n.unhashed && n.hash == base {
		return nil
	}
	was := map[string]object.TreeEntry{}
	if !base.IsZero() {
		t, err := w.r.tree(base, strings.TrimSuffix(prefix, "/"))
		if err != nil {
			return err
		}
		for _, e := range t.Entries {
			was[e.Name] = e
		}
	}
	if err := w.count(prefix, len(was)); err != nil {
		return err
	}
	for _, c := range n.children {
		b, ok := was[c.name]
		if ok && (b.Mode == filemode.Dir) == (c.mode == filemode.Dir) {
			delete(was, c.name)
		}
		var err error
		switch {
		case c.mode == filemode.Dir && b.Mode == filemode.Dir:
			err = w.compare(prefix+c.name+"/", b.Hash, c)
		case c.mode == filemode.Dir:
			err = w.compare(prefix+c.name+"/", plumbing.ZeroHash, c)
		case !ok || b.Mode == filemode.Dir:
			w.changes = append(w.changes, Change{prefix + c.name, Added})
		default:
			if c.unhashed {
				c.hash, err = w.hash(prefix+c.name, c.mode)
			}
			if b.Mode == filemode.Deprecated {
				b.Mode = filemode.Regular
			}
			if c.hash != b.Hash || c.mode != b.Mode {
				w.changes = append(w.changes, Change{prefix + c.name, Modified})
			}
		}
		if err != nil {
			return err
		}
	}
	for name, b := range was {
		if b.Mode != filemode.Dir {
			w.changes = append(w.changes, Change{prefix + name, Deleted})
		} else if err := w.compare(prefix+name+"/", b.Hash, nil); err != nil {
			return err
		}
	}
	return nil
}

// Diff compares two directories. The result is sorted. Directories named .git are left out, symbolic links are compared
// and not followed, and what is neither a file nor a link is left out.
func Diff(ctx context.Context, base, head fs.FS) ([]Change, error) {
	was, err := files(ctx, base)
	if err != nil {
		return nil, err
	}
	is, err := files(ctx, head)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for name, kind := range is {
		if before, ok := was[name]; !ok {
			changes = append(changes, Change{name, Added})
		} else if same, err := equal(ctx, base, head, name, before, kind); err != nil {
			return nil, err
		} else if !same {
			changes = append(changes, Change{name, Modified})
		}
		delete(was, name)
	}
	for name := range was {
		changes = append(changes, Change{name, Deleted})
	}
	return sorted(changes), nil
}

// files returns the types of the files below a directory.
func files(ctx context.Context, fsys fs.FS) (map[string]fs.FileMode, error) {
	w, all := &worktree{ctx: ctx}, map[string]fs.FileMode{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if d.Type().IsRegular() || d.Type() == fs.ModeSymlink {
			all[name] = d.Type()
		}
		return w.count(name, 1)
	})
	return all, err
}

func equal(ctx context.Context, base, head fs.FS, name string, before, kind fs.FileMode) (_ bool, err error) {
	if before != kind {
		return false, nil
	}
	if kind == fs.ModeSymlink {
		a, err := fs.ReadLink(base, name)
		if err != nil {
			return false, err
		}
		b, err := fs.ReadLink(head, name)
		return a == b, err
	}
	var texts [2]io.Reader
	for i, fsys := range []fs.FS{base, head} {
		f, err := fsys.Open(name)
		if err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		texts[i] = ctxio.Reader{Ctx: ctx, R: f}
	}
	var a, b [32 << 10]byte
	for {
		n, err := io.ReadFull(texts[0], a[:])
		m, err2 := io.ReadFull(texts[1], b[:])
		if !bytes.Equal(a[:n], b[:m]) {
			return false, nil
		}
		for _, e := range []error{err, err2} {
			if e != nil && e != io.EOF && e != io.ErrUnexpectedEOF {
				return false, e
			}
		}
		if err != nil || err2 != nil {
			return n == m, nil
		}
	}
}
