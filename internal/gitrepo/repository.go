package gitrepo

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ErrNone is the class of errors about a directory that is in no work tree of git.
var ErrNone = fault.New(fault.Input, "no git repository")

const (
	maxPointer = 4 << 10  // bytes of a file that names a directory
	maxObject  = 16 << 20 // bytes of a commit, a tag or a tree
	maxEntries = 200_000  // entries of one tree
	maxDepth   = 128      // nesting of directories, and of tags
)

// Repository is a work tree with its repository. It may be used concurrently.
type Repository struct {
	root    string
	git     billy.Filesystem
	store   *filesystem.Storage
	shallow map[plumbing.Hash]bool // commits whose parents were not fetched
	modes   bool                   // whether the bit for execution is that of files
	partial bool

	mu    sync.Mutex // of store, which is not safe for concurrent use, and of trees
	trees map[plumbing.Hash]*object.Tree
}

// Open opens the repository of the work tree that a directory is in. The error wraps [ErrNone] if there is none.
func Open(dir string) (*Repository, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for root := start; ; root = filepath.Dir(root) {
		git := filepath.Join(root, ".git")
		info, err := os.Stat(git)
		if err == nil && !info.IsDir() {
			git, err = pointer(git, "gitdir: ", root)
		}
		switch {
		case err == nil:
			r := &Repository{root: root, trees: map[plumbing.Hash]*object.Tree{}}
			if err := r.open(git); err != nil {
				return nil, fmt.Errorf("open the git repository of %s: %w", root, err)
			}
			return r, nil
		case !errors.Is(err, os.ErrNotExist):
			return nil, err
		case root == filepath.Dir(root):
			return nil, fmt.Errorf("%w: neither %s nor a directory above it has .git", ErrNone, start)
		}
	}
}

// pointer reads a file that names a directory, absolute or relative to another one.
func pointer(file, prefix, from string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPointer {
		return "", fmt.Errorf("%w: %s does not name a directory", fault.ErrInvalid, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	dir, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), prefix)
	if !ok || dir == "" {
		return "", fmt.Errorf("%w: %s does not begin with %q and a directory", fault.ErrInvalid, file, prefix)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(from, dir)
	}
	return dir, nil
}

func (r *Repository) open(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return err
	}
	r.git = osfs.New(dir)
	switch common, err := pointer(filepath.Join(dir, "commondir"), "", dir); {
	case err == nil:
		r.git = dotgit.NewRepositoryFilesystem(r.git, osfs.New(common))
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	r.store = filesystem.NewStorageWithOptions(r.git, cache.NewObjectLRUDefault(),
		filesystem.Options{KeepDescriptors: true, AlternatesFS: osfs.New(string(filepath.Separator))})
	config, err := r.store.Config()
	if err != nil {
		return fmt.Errorf("its config: %w", err)
	}
	core, extensions := config.Raw.Section("core"), config.Raw.Section("extensions")
	if format := extensions.Option("objectformat"); format != "" && format != "sha1" {
		return fmt.Errorf("%w: its objects are named by %s, and only sha1 is read", fault.ErrInvalid, format)
	}
	if format := extensions.Option("refstorage"); format != "" && format != "files" {
		return fmt.Errorf("%w: its branches are in the form %s, and only files is read", fault.ErrInvalid, format)
	}
	r.modes = !strings.EqualFold(core.Option("filemode"), "false")
	r.partial = extensions.Option("partialclone") != ""
	shallow, err := r.store.Shallow()
	if err != nil {
		return fmt.Errorf("its shallow commits: %w", err)
	}
	r.shallow = map[plumbing.Hash]bool{}
	for _, h := range shallow {
		r.shallow[h] = true
	}
	return nil
}

// Close closes the files of the repository. What was returned by a [Base] is not to be read after it.
func (r *Repository) Close() error { return r.store.Close() }

// Root returns the absolute path of the work tree.
func (r *Repository) Root() string { return r.root }

// size returns the size of an object in bytes.
func (r *Repository) size(h plumbing.Hash) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size, err := r.store.EncodedObjectSize(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) { // it does not look into alternates
		var o plumbing.EncodedObject
		if o, err = r.store.EncodedObject(plumbing.AnyObject, h); err == nil {
			size = o.Size()
		}
	}
	return size, err
}

// object reads an object. What says what it is.
func (r *Repository) object(h plumbing.Hash, kind plumbing.ObjectType, most int64, what string) (plumbing.EncodedObject, error) {
	size, err := r.size(h)
	if err == nil && size > most {
		return nil, fmt.Errorf("object %s, %s: %w: more than %d bytes", h, what, fault.ErrLimit, most)
	}
	var o plumbing.EncodedObject
	if err == nil {
		r.mu.Lock()
		o, err = r.store.EncodedObject(plumbing.AnyObject, h)
		r.mu.Unlock()
	}
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		hint := `Fetch it: "git fetch"; if it is still missing, "git fsck" says what else is.`
		if r.partial {
			hint = `This is a partial clone, for which git fetches objects when it needs them: "git fetch --refetch --no-filter" fetches all.`
		} else if len(r.shallow) > 0 {
			hint = `This is a shallow clone: "git fetch --unshallow" fetches the rest.`
		}
		return nil, fault.Advise(fmt.Errorf("%w: object %s, %s, is not in the repository", fault.ErrInvalid, h, what), hint)
	case err != nil:
		return nil, fault.Advise(fmt.Errorf("object %s, %s: %w: %w", h, what, fault.ErrIntegrity, err),
			`The object is damaged: "git fsck" says which ones are; remove their files and fetch them, or clone the repository.`)
	case kind != plumbing.AnyObject && o.Type() != kind:
		return nil, fmt.Errorf("%w: object %s, %s, is a %s and no %s", fault.ErrInvalid, h, what, o.Type(), kind)
	}
	return o, nil
}

// decode reads a commit, a tag or a tree.
func (r *Repository) decode(h plumbing.Hash, what string, into object.Object) error {
	o, err := r.object(h, into.Type(), maxObject, what)
	if err == nil {
		if err = into.Decode(o); err != nil {
			err = fmt.Errorf("object %s, %s: %w: %w", h, what, fault.ErrIntegrity, err)
		}
	}
	return err
}

// commit returns the commit that a revision names.
func (r *Repository) commit(rev string) (*object.Commit, error) {
	name, steps := rev, ""
	if i := strings.IndexAny(rev, "~^"); i >= 0 {
		name, steps = rev[:i], rev[i:]
	}
	if name == "@" {
		name = "HEAD"
	}
	c, err := r.named(name)
	for err == nil && steps != "" {
		end := 1
		for end < len(steps) && steps[end] >= '0' && steps[end] <= '9' {
			end++
		}
		n := 1
		if end > 1 {
			if n, err = strconv.Atoi(steps[1:end]); err != nil || n > 1<<20 {
				return nil, fmt.Errorf("%w: revision %s goes back too far", fault.ErrInvalid, fault.Quote(rev))
			}
		}
		switch {
		case steps[0] == '^' && n > 0:
			c, err = r.parent(c, n-1, rev)
		case steps[0] == '~':
			for ; n > 0 && err == nil; n-- {
				c, err = r.parent(c, 0, rev)
			}
		case steps[0] != '^':
			return nil, unknown(rev)
		}
		steps = steps[end:]
	}
	return c, err
}

func (r *Repository) parent(c *object.Commit, n int, rev string) (*object.Commit, error) {
	if r.shallow[c.Hash] {
		return nil, fault.Advise(fmt.Errorf("%w: revision %s is beyond the commits of this shallow clone", fault.ErrInvalid, fault.Quote(rev)),
			`Fetch more commits: "git fetch --unshallow", or "git fetch --deepen=100".`)
	}
	if n >= len(c.ParentHashes) {
		return nil, fmt.Errorf("%w: revision %s: commit %s has %d parents", fault.ErrInvalid, fault.Quote(rev), c.Hash, len(c.ParentHashes))
	}
	parent := &object.Commit{}
	return parent, r.decode(c.ParentHashes[n], "a parent of commit "+c.Hash.String(), parent)
}

func unknown(rev string) error {
	return fault.Advise(fmt.Errorf("%w: the repository has no revision %s", fault.ErrInvalid, fault.Quote(rev)),
		`A revision is a branch, a tag, a branch of a remote such as "origin/main", a hash, or one of these with "~2" or "^"; "git fetch" fetches those of remotes.`)
}

// named returns the commit of a reference or of a hash, which may be abbreviated.
func (r *Repository) named(name string) (*object.Commit, error) {
	var found []plumbing.Hash
	if plumbing.IsHash(name) {
		found = []plumbing.Hash{plumbing.NewHash(name)}
	} else if filepath.IsLocal(name) {
		for _, rule := range plumbing.RefRevParseRules {
			if rule == "%s" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" && !strings.HasPrefix(name, "refs/") {
				continue // a file of the repository that is no reference
			}
			r.mu.Lock()
			ref, err := storer.ResolveReference(r.store, plumbing.ReferenceName(fmt.Sprintf(rule, name)))
			r.mu.Unlock()
			if err == nil {
				found = []plumbing.Hash{ref.Hash()}
				break
			}
			if !errors.Is(err, plumbing.ErrReferenceNotFound) && rule == "%s" && name == "HEAD" {
				return nil, fmt.Errorf("HEAD: %w: %w", fault.ErrInvalid, err)
			}
		}
	}
	if len(found) == 0 && len(name) >= 4 && len(name) < 40 {
		prefix := strings.ToLower(name)
		half, err := hex.DecodeString(prefix[:len(prefix)&^1])
		if err == nil && strings.Trim(prefix, "0123456789abcdef") == "" {
			r.mu.Lock()
			all, err := r.store.HashesWithPrefix(half)
			r.mu.Unlock()
			if err != nil {
				return nil, fmt.Errorf("look for objects that begin with %s: %w", prefix, err)
			}
			for _, h := range all {
				if strings.HasPrefix(h.String(), prefix) {
					if o, err := r.object(h, plumbing.CommitObject, maxObject, "a commit"); err == nil {
						found = append(found, o.Hash())
					}
				}
			}
		}
	}
	switch {
	case len(found) == 0 && name == "HEAD":
		return nil, fmt.Errorf("%w: the branch of the work tree has no commit", fault.ErrInvalid)
	case len(found) == 0:
		return nil, unknown(name)
	case len(found) > 1:
		return nil, fmt.Errorf("%w: %d commits begin with %s: give more of the hash", fault.ErrInvalid, len(found), name)
	}
	h := found[0]
	for range maxDepth {
		o, err := r.object(h, plumbing.AnyObject, maxObject, "which "+fault.Quote(name)+" names")
		if err != nil {
			return nil, err
		}
		if o.Type() != plumbing.TagObject {
			c := &object.Commit{}
			return c, r.decode(h, "which "+fault.Quote(name)+" names", c)
		}
		tag := &object.Tag{}
		if err := r.decode(h, "a tag", tag); err != nil {
			return nil, err
		}
		h = tag.Target
	}
	return nil, fmt.Errorf("%w: %s is a tag of a tag, more than %d times", fault.ErrLimit, fault.Quote(name), maxDepth)
}

// tree reads a tree and checks the names in it.
func (r *Repository) tree(h plumbing.Hash, dir string) (*object.Tree, error) {
	r.mu.Lock()
	t := r.trees[h]
	r.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, what := &object.Tree{}, "the directory "+fault.Quote(cmp.Or(dir, "."))
	if err := r.decode(h, what, t); err != nil {
		return nil, err
	}
	if len(t.Entries) > maxEntries {
		return nil, fmt.Errorf("object %s, %s: %w: more than %d entries", h, what, fault.ErrLimit, maxEntries)
	}
	for _, e := range t.Entries {
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") {
			return nil, fmt.Errorf("%w: object %s, %s, has an entry named %s", fault.ErrInvalid, h, what, fault.Quote(e.Name))
		}
	}
	r.mu.Lock()
	r.trees[h] = t
	r.mu.Unlock()
	return t, nil
}

// blob returns the bytes of a file.
func (r *Repository) blob(h plumbing.Hash, most int64, name string) (_ []byte, err error) {
	o, err := r.object(h, plumbing.BlobObject, most, "the file "+fault.Quote(name))
	if err != nil {
		return nil, err
	}
	content, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	var text bytes.Buffer
	_, err = io.Copy(&text, io.LimitReader(content, most))
	return text.Bytes(), err
}
