// Package gitrepo reads from a git repository what a pull request would change, without starting git: the merge base of a
// revision and HEAD, its files, and the changes from it to the index. It also reads lists of changes, and compares two
// directories.
package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/memfs"
)

// ErrNone is the class of errors about a directory that is in no work tree of git.
var ErrNone = fault.New(fault.Input, "no git repository")

const maxObject = 16 << 20 // bytes

// Repository is a work tree with its repository. It may be used concurrently.
type Repository struct {
	root    string
	mu      sync.Mutex // of objects, which are not safe for concurrent use
	objects objects
}

// Open opens the repository of the work tree that a directory is in. The error wraps [ErrNone] if there is none.
func Open(dir string) (*Repository, error) {
	root, err := filepath.Abs(dir)
	for err == nil {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			return open(root)
		}
		if root == filepath.Dir(root) {
			return nil, fmt.Errorf("%w: neither %s nor a directory above it has .git", ErrNone, dir)
		}
		root = filepath.Dir(root)
	}
	return nil, err
}

func open(root string) (*Repository, error) {
	dir, err := pointer(root, ".git", "gitdir: ") // a file in a linked work tree
	if err != nil {
		return nil, err
	}
	git := osfs.New(dir)
	common, err := pointer(dir, "commondir", "")
	if err == nil {
		git = dotgit.NewRepositoryFilesystem(git, osfs.New(common))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	store := filesystem.NewStorageWithOptions(git, cache.NewObjectLRUDefault(),
		filesystem.Options{KeepDescriptors: true, LargeObjectThreshold: maxObject, AlternatesFS: osfs.New(string(filepath.Separator))})
	config, err := store.Config()
	if err != nil {
		return nil, fmt.Errorf("the config of the git repository %s: %w", dir, err)
	}
	if format := config.Raw.Section("extensions").Option("objectformat"); format != "" && format != "sha1" {
		return nil, fmt.Errorf("%w: the objects of the git repository %s are named by %s, and only sha1 can be read", fault.ErrInvalid, dir, format)
	}
	shallow, err := store.Shallow()
	return &Repository{root: root, objects: objects{store, context.Background(), shallow}}, err
}

// pointer returns the directory of a name, or the one that a file of that name names, absolute or relative to its own.
func pointer(dir, name, prefix string) (string, error) {
	file := filepath.Join(dir, name)
	if info, err := os.Stat(file); err != nil || info.IsDir() {
		return file, err
	}
	text, err := bundlefs.ReadFile(os.DirFS(dir), name)
	to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), prefix)
	if err == nil && (!ok || to == "") {
		err = fmt.Errorf("%w: %s does not begin with %q and a directory", fault.ErrInvalid, file, prefix)
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	return to, err
}

// Close closes the files of the repository. What was returned by a [Base] is not to be read after it.
func (r *Repository) Close() error { return r.objects.Close() }

// Root returns the absolute path of the work tree.
func (r *Repository) Root() string { return r.root }

// objects reads objects within a limit while a context lasts.
type objects struct {
	*filesystem.Storage
	ctx     context.Context
	shallow []plumbing.Hash // commits whose parents were not fetched; they are read without parents
}

func (o objects) EncodedObject(kind plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	if o.ctx.Err() != nil {
		return nil, context.Cause(o.ctx)
	}
	e, err := o.Storage.EncodedObject(kind, h) // which does not read a larger one
	if err == nil && e.Size() > maxObject {
		return nil, fmt.Errorf("%s %s: %w: more than %d bytes", kind, h, fault.ErrLimit, maxObject)
	}
	if err != nil {
		return nil, fault.Advise(fmt.Errorf("%s %s: %w: %w", kind, h, fault.ErrInvalid, err),
			`"git fetch --unshallow" completes a shallow clone, "git fetch --refetch --no-filter" a partial one; "git fsck" says what else is missing or damaged.`)
	}
	if kind == plumbing.CommitObject && slices.Contains(o.shallow, h) {
		c := &object.Commit{}
		err = c.Decode(e)
		c.ParentHashes, e = nil, o.NewEncodedObject()
		err = errors.Join(err, c.Encode(e))
	}
	return e, err
}

// commit returns the commit that a revision names.
func (o objects) commit(rev string) (*object.Commit, error) {
	h, found := plumbing.NewHash(rev), plumbing.IsHash(rev)
	for _, rule := range plumbing.RefRevParseRules {
		ref, err := storer.ResolveReference(o, plumbing.ReferenceName(fmt.Sprintf(rule, rev)))
		if err == nil && !found {
			h, found = ref.Hash(), true
		}
	}
	if !found {
		return nil, fault.Advise(fmt.Errorf("%w: the repository has no revision %s", fault.ErrInvalid, fault.Quote(rev)),
			`A revision is a branch with a commit, a tag, a branch of a remote such as "origin/main", or a full hash; "git fetch" fetches those of remotes.`)
	}
	if tag, err := object.GetTag(o, h); err == nil {
		return tag.Commit()
	}
	c, err := object.GetCommit(o, h)
	if err != nil {
		err = fmt.Errorf("revision %s: %w", fault.Quote(rev), err)
	}
	return c, err
}

// Base is the commit that a pull request is compared with.
type Base struct {
	r     *Repository
	files map[string]node // by path
	dirs  map[string][]fs.DirEntry
}

// Base returns the merge base of a revision and HEAD. A revision is a branch, a tag, a branch of a remote, or a full hash.
func (r *Repository) Base(ctx context.Context, rev string) (*Base, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := objects{r.objects.Storage, ctx, r.objects.shallow}
	base, err := o.commit(rev)
	head, headErr := o.commit("HEAD")
	if err = errors.Join(err, headErr); err != nil {
		return nil, err
	}
	common, err := base.MergeBase(head)
	if err = errors.Join(err, context.Cause(ctx)); err == nil && len(common) == 0 {
		err = fault.Advise(fmt.Errorf("%w: they have no commit in common", fault.ErrInvalid),
			`In a shallow clone, fetch more commits: "git fetch --unshallow", or "git fetch --deepen=100".`)
	}
	b := &Base{r, map[string]node{}, map[string][]fs.DirEntry{}}
	if err == nil {
		err = b.add(o, ".", common[0].TreeHash, &names{ctx, maxNames})
	}
	if err != nil {
		return nil, fmt.Errorf("the merge base of %s and HEAD: %w", fault.Quote(rev), err)
	}
	return b, nil
}

// add adds what is in a directory.
func (b *Base) add(o objects, dir string, h plumbing.Hash, all *names) error {
	tree, err := object.GetTree(o, h)
	if err != nil {
		return fmt.Errorf("the directory %s: %w", fault.Quote(dir), err)
	}
	b.dirs[dir] = nil
	for _, e := range tree.Entries {
		name := strings.TrimPrefix(dir+"/"+strings.ReplaceAll(e.Name, "/", "\x00"), "./") // a slash is refused, as NUL is
		err := all.take(name)
		n := newNode(b.r, name, e.Mode, e.Hash)
		b.dirs[dir] = append(b.dirs[dir], fs.FileInfoToDirEntry(n))
		if e.Mode != filemode.Dir {
			b.files[name] = n
		} else if err == nil {
			err = b.add(o, name, e.Hash, all)
		}
		if err != nil {
			return err
		}
	}
	slices.SortFunc(b.dirs[dir], func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return nil
}

// Changes compares the commit with the index: what is committed or staged since, which is what a pull request would take.
// New files count once they are added ("git add"), and so do edits. A file in conflict is modified. The result is sorted.
func (b *Base) Changes(ctx context.Context) ([]Change, error) {
	index, err := b.r.objects.Index()
	if err != nil {
		return nil, fault.Advise(fmt.Errorf("read the index of the git repository %s: %w: %w", b.r.root, fault.ErrInvalid, err),
			`Write one of a plain form: "git update-index --no-split-index", "git sparse-checkout reapply --no-sparse-index", or "git reset".`)
	}
	staged, all := map[string]node{}, &names{ctx, maxNames}
	for _, e := range index.Entries {
		if err := all.take(e.Name); err != nil {
			return nil, fmt.Errorf("the index of the git repository %s: %w", b.r.root, err)
		}
		if e.Stage != 0 { // in conflict
			staged[e.Name] = node{}
		} else if !e.IntentToAdd {
			staged[e.Name] = newNode(b.r, e.Name, e.Mode, e.Hash)
		}
	}
	return compare(b.files, staged), nil
}

// FS returns the files of the commit, which are read when they are opened, within [bundlefs.MaxFile]. A symbolic link is a
// file of that type with its target as text, and is not followed; a submodule cannot be opened. It may be used concurrently.
func (b *Base) FS() fs.FS { return baseFS{b} }

type baseFS struct{ *Base }

func (f baseFS) Open(name string) (fs.File, error) {
	if list, ok := f.dirs[name]; ok {
		return memfs.OpenDir(newNode(f.r, name, filemode.Dir, plumbing.ZeroHash), list), nil
	}
	n, ok := f.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	blob, err := object.GetBlob(f.r.objects, n.hash)
	if err == nil && blob.Size > bundlefs.MaxFile {
		err = fmt.Errorf("%w: more than %d bytes", fault.ErrLimit, bundlefs.MaxFile)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	text, err := blob.Reader()
	return file{text, n}, err
}

type file struct {
	io.ReadCloser
	node
}

func (f file) Stat() (fs.FileInfo, error) { return f.node, nil }

// node describes a file or directory of a commit or of the index.
type node struct {
	memfs.Info
	r    *Repository
	hash plumbing.Hash
}

func newNode(r *Repository, name string, m filemode.FileMode, h plumbing.Hash) node {
	mode, err := m.ToOSFileMode()
	if err != nil || m == filemode.Submodule {
		mode = fs.ModeIrregular
	}
	return node{memfs.Info{Base: path.Base(name), Kind: mode}, r, h}
}

// Size returns 0 for what is no file or missing.
func (n node) Size() int64 {
	n.r.mu.Lock()
	defer n.r.mu.Unlock()
	if b, err := object.GetBlob(n.r.objects, n.hash); err == nil {
		return b.Size
	}
	return 0
}
