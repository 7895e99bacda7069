// Package gitrepo finds what a pull request would change: from a git repository, without starting git, from a list of
// changes that git prints, or by comparing two directories.
package gitrepo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/memfs"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// ErrNone is the class of errors about a directory that is in no work tree of git.
var ErrNone = fault.New(fault.Input, "no git repository")

const (
	maxObject = 16 << 20  // bytes of an object, and of a list of changes
	maxNames  = 128 << 20 // bytes that the names of files may take
)

// Repository is a work tree with its repository. It may be used concurrently.
type Repository struct {
	root    string
	mu      sync.Mutex // of objects, which are not safe for concurrent use
	objects objects
}

// Open opens the repository of the work tree that a directory is in. The error wraps [ErrNone] if there is none.
func Open(dir string) (*Repository, error) {
	root, err := filepath.Abs(dir)
	for ; err == nil; root = filepath.Dir(root) {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			return open(root)
		}
		if root == filepath.Dir(root) {
			return nil, fmt.Errorf("%w: neither %s nor a directory above it has .git", ErrNone, dir)
		}
	}
	return nil, err
}

func open(root string) (*Repository, error) {
	dir, err := pointer(root, ".git", "gitdir: ") // a file in a linked work tree
	if err != nil {
		return nil, err
	}
	git := osfs.New(dir)
	if common, err := pointer(dir, "commondir", ""); err == nil {
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
	e, err := o.Storage.EncodedObject(kind, h) // whose content is not read yet if it is large
	switch {
	case o.ctx.Err() != nil:
		return nil, context.Cause(o.ctx)
	case err != nil:
		return nil, fault.Advise(fmt.Errorf("%s %s: %w: %w", kind, h, fault.ErrInvalid, err),
			`"git fetch --unshallow" completes a shallow clone, "git fetch --refetch --no-filter" a partial one; "git fsck" says what else is missing or damaged.`)
	case e.Size() > maxObject:
		return nil, fmt.Errorf("%s %s: %w: more than %d bytes", kind, h, fault.ErrLimit, maxObject)
	case kind == plumbing.CommitObject && slices.Contains(o.shallow, h):
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
		if ref, err := storer.ResolveReference(o, plumbing.ReferenceName(fmt.Sprintf(rule, rev))); err == nil && !found {
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
	return object.GetCommit(o, h)
}

// Base is the commit that a pull request is compared with.
type Base struct {
	r     *Repository
	files map[string]node // by path
	fsys  fs.FS
	// staged are the files of the index, once it was read.
	staged map[string]node
}

// Base returns the merge base of a revision and HEAD. A revision is a branch, a tag, a branch of a remote, or a full hash.
func (r *Repository) Base(ctx context.Context, rev string) (*Base, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := objects{r.objects.Storage, ctx, r.objects.shallow}
	base, err := o.commit(rev)
	if err != nil {
		return nil, fmt.Errorf("revision %s: %w", fault.Quote(rev), err)
	}
	head, err := o.commit("HEAD")
	if err != nil {
		return nil, fmt.Errorf("revision HEAD: %w", err)
	}
	common, err := base.MergeBase(head)
	if err = errors.Join(err, context.Cause(ctx)); err == nil && len(common) == 0 {
		err = fault.Advise(fmt.Errorf("%w: they have no commit in common", fault.ErrInvalid),
			`In a shallow clone, fetch more commits: "git fetch --unshallow", or "git fetch --deepen=100".`)
	}
	b, all := &Base{r: r, files: map[string]node{}}, names(maxNames)
	if err == nil {
		err = b.add(o, "", common[0].TreeHash, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("the merge base of %s and HEAD: %w", fault.Quote(rev), err)
	}
	b.fsys = memfs.New(b.files, memfs.Dir, node.open)
	return b, nil
}

// add adds the files below a directory, whose name is empty or ends with a slash.
func (b *Base) add(o objects, dir string, h plumbing.Hash, all *names) error {
	tree, err := object.GetTree(o, h)
	if err != nil {
		return fmt.Errorf("the directory %s: %w", fault.Quote("/"+dir), err)
	}
	for _, e := range tree.Entries {
		name := dir + strings.ReplaceAll(e.Name, "/", "\x00") // which is refused
		if err := all.take(o.ctx, name); err != nil {
			return err
		}
		if e.Mode != filemode.Dir {
			b.files[name] = newNode(b.r, name, e.Mode, e.Hash)
		} else if err := b.add(o, name+"/", e.Hash, all); err != nil {
			return err
		}
	}
	return nil
}

// Changes compares the commit with the index: what is committed or staged since, which is what a pull request would take.
// New files count once they are added ("git add"), and so do edits. A file in conflict is modified. The result is sorted.
func (b *Base) Changes(ctx context.Context) ([]Change, error) {
	staging, err := b.r.index()
	if err != nil {
		return nil, fault.Advise(fmt.Errorf("read the index of the git repository %s: %w: %w", b.r.root, fault.ErrInvalid, err),
			`Write one of a plain form: "git update-index --no-split-index", "git sparse-checkout reapply --no-sparse-index", or "git reset".`)
	}
	staged, all := map[string]node{}, names(maxNames)
	for _, e := range staging.Entries {
		if err := all.take(ctx, e.Name); err != nil {
			return nil, fmt.Errorf("the index of the git repository %s: %w", b.r.root, err)
		}
		if e.Stage != 0 { // in conflict
			staged[e.Name] = node{}
		} else if !e.IntentToAdd {
			staged[e.Name] = newNode(b.r, e.Name, e.Mode, e.Hash)
		}
	}
	b.staged = staged
	return compare(b.files, staged), nil
}

// index reads the index: that of the commit which a hook is called for, or the usual one.
func (r *Repository) index() (*index.Index, error) {
	name := os.Getenv("GIT_INDEX_FILE")
	if name == "" {
		return r.objects.Index()
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.root, name)
	}
	f, err := regularfile.Open(name)
	if err != nil {
		return nil, err
	}
	i := &index.Index{}
	return i, errors.Join(index.NewDecoder(f).Decode(i), f.Close())
}

// Unstaged returns the regular files below directories of the work tree that are not as in the index, after [Base.Changes]:
// what a pull request would not take. The result is sorted.
func (b *Base) Unstaged(ctx context.Context, dirs []string) (names []string, err error) {
	root, err := os.OpenRoot(b.r.root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	there := map[string]bool{}
	for _, dir := range dirs {
		err := fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err = errors.Join(err, context.Cause(ctx)); err != nil || !d.Type().IsRegular() {
				return err
			}
			there[name] = true
			hash, err := blobHash(ctx, root, name)
			if was, ok := b.staged[name]; err == nil && (!ok || was.hash != hash) {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for name, n := range b.staged {
		if n.Kind.IsRegular() && !there[name] && slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(name, dir+"/") }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// blobHash returns the hash that git has for the content of a file.
func blobHash(ctx context.Context, root *os.Root, name string) (h plumbing.Hash, err error) {
	f, err := root.Open(name)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return h, err
	}
	sum := plumbing.NewHasher(plumbing.BlobObject, info.Size())
	_, err = ctxio.Copy(sum, ctxio.Reader{Ctx: ctx, R: f})
	return sum.Sum(), err
}

// FS returns the files of the commit, which are read when they are opened, within [bundlefs.MaxFile]. A symbolic link is a
// file of that type with its target as text, and is not followed; a submodule cannot be opened. It may be used concurrently.
func (b *Base) FS() fs.FS { return b.fsys }

// node describes a file of a commit or of the index. Its size is 0 if it cannot be read.
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

func (n node) Size() int64                  { size, _, _ := n.read(); return size }
func (n node) open() (io.ReadCloser, error) { _, text, err := n.read(); return text, err }

func (n node) read() (int64, io.ReadCloser, error) {
	n.r.mu.Lock()
	defer n.r.mu.Unlock()
	blob, err := object.GetBlob(n.r.objects, n.hash)
	if err != nil {
		return 0, nil, err
	}
	if blob.Size > bundlefs.MaxFile {
		return blob.Size, nil, fmt.Errorf("%w: more than %d bytes", fault.ErrLimit, bundlefs.MaxFile)
	}
	text, err := blob.Reader() // of memory
	return blob.Size, text, err
}

// Change is a file that a pull request changes.
type Change struct {
	Path string // with slashes, from the root of the work tree
	Kind Kind
}

// Kind says how a file changes.
type Kind int

// Unknown is the kind of a file in a list of names alone.
const (
	Unknown Kind = iota
	Added
	Modified
	Deleted
)

func (k Kind) String() string { return [...]string{"unknown", "added", "modified", "deleted"}[k] }

// names is the memory in bytes that is left for names of files.
type names int

func (n *names) take(ctx context.Context, name string) error {
	*n -= names(len(name) + 256)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case *n < 0 || strings.Count(name, "/") > 128:
		return fmt.Errorf("%s: %w: more names of files than %d MiB hold, or directories nested deeper than 128", fault.Quote(name), fault.ErrLimit, maxNames>>20)
	case name == "." || !fs.ValidPath(strings.ToValidUTF8(name, "_")) || strings.Contains(name, "\x00") || strings.Contains("/"+strings.ToLower(name)+"/", "/.git/"):
		return fmt.Errorf("%w: the name %s is not that of a file below the root of the repository", fault.ErrInvalid, fault.Quote(name))
	}
	return nil
}

// compare compares what files are.
func compare[T comparable](was, is map[string]T) []Change {
	kinds := map[string]Kind{}
	for name := range was {
		kinds[name] = Deleted
	}
	for name, after := range is {
		if before, ok := was[name]; !ok {
			kinds[name] = Added
		} else if kinds[name] = Modified; before == after {
			delete(kinds, name)
		}
	}
	return sorted(kinds)
}

func sorted(kinds map[string]Kind) (changes []Change) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		changes = append(changes, Change{name, kinds[name]})
	}
	return changes
}

// Diff compares the regular files of two directories. The result is sorted. What is named .git is left out.
func Diff(ctx context.Context, base, head fs.FS) ([]Change, error) {
	was, err := sums(ctx, base)
	is, headErr := sums(ctx, head)
	return compare(was, is), errors.Join(err, headErr)
}

func sums(ctx context.Context, fsys fs.FS) (map[string][sha256.Size]byte, error) {
	sums, all := map[string][sha256.Size]byte{}, names(maxNames)
	return sums, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." || d.Name() == ".git" && !d.IsDir() {
			return err
		}
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		if err := all.take(ctx, name); err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := fsys.Open(name)
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = ctxio.Copy(sum, ctxio.Reader{Ctx: ctx, R: f})
		sums[name] = [sha256.Size]byte(sum.Sum(nil))
		return errors.Join(err, f.Close())
	})
}

// ReadChanges reads what "git diff --name-only" or "git diff --name-status" prints, with or without -z. The result is
// sorted. The old name of a renamed file is deleted.
func ReadChanges(r io.Reader) ([]Change, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxObject+1))
	if err == nil && len(text) > maxObject {
		err = fmt.Errorf("%w: more than %d bytes", fault.ErrLimit, maxObject)
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of changed files: %w", err)
	}
	const copied Kind = -1 // which does not change
	kindsOf := map[string][]Kind{"A": {Added}, "D": {Deleted}, "M": {Modified}, "T": {Modified}, "U": {Modified}, "R": {Deleted, Added}, "C": {copied, Added}}
	list, quoted := string(text), !strings.Contains(string(text), "\x00") // are names with tabs and ends of lines
	fields := strings.FieldsFunc(list, func(r rune) bool { return r == 0 || quoted && strings.ContainsRune("\t\r\n", r) })
	withStatus := quoted && strings.Contains(list, "\t") || !quoted && len(fields) > 1 && kindsOf[strings.TrimRight(fields[0], "0123456789")] != nil
	kinds, all := map[string]Kind{}, names(maxNames)
	for len(fields) > 0 {
		record := []Kind{Unknown}
		if withStatus {
			record, fields = kindsOf[strings.TrimRight(fields[0], "0123456789")], fields[1:]
		}
		if len(record) == 0 || len(record) > len(fields) {
			return nil, fmt.Errorf("the list of changed files: %w: after %d files comes neither a name nor a status with its names, as git diff --name-status prints them", fault.ErrInvalid, len(kinds))
		}
		for _, kind := range record {
			name := fields[0]
			if quoted && name[0] == '"' {
				name, err = strconv.Unquote(name) // the escapes of git are some of those of Go
			}
			if err = errors.Join(err, all.take(context.Background(), name)); err != nil {
				return nil, fmt.Errorf("the list of changed files: %s: %w", fault.Quote(fields[0]), err)
			}
			if was, ok := kinds[name]; ok && was != kind && kind != copied {
				kind = Modified // deleted and added, as by two renames
			}
			if kind != copied {
				kinds[name] = kind
			}
			fields = fields[1:]
		}
	}
	return sorted(kinds), nil
}
