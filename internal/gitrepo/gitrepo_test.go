package gitrepo_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/gitrepo"
)

// repository writes a repository and its work tree.
type repository struct {
	t     *testing.T
	dir   string
	store *filesystem.Storage
	time  time.Time // of the next commit
}

func create(t *testing.T) *repository {
	r := &repository{t: t, dir: t.TempDir(), time: time.Unix(1_700_000_000, 0)}
	r.store = filesystem.NewStorage(osfs.New(filepath.Join(r.dir, ".git")), cache.NewObjectLRUDefault())
	r.must(r.store.Init())
	r.point("HEAD", "ref: refs/heads/main")
	return r
}

func (r *repository) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// write writes a file of the work tree, or of the repository below .git. A text that begins with "-> " is a link, with
// "#!" a program.
func (r *repository) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	r.must(os.MkdirAll(filepath.Dir(file), 0o755))
	if target, ok := strings.CutPrefix(text, "-> "); ok {
		r.must(os.Symlink(target, file))
		return
	}
	r.must(os.WriteFile(file, []byte(text), 0o644))
	if strings.HasPrefix(text, "#!") {
		r.must(os.Chmod(file, 0o755))
	}
}

func (r *repository) point(name, to string) { r.write(".git/"+name, to+"\n") }

func (r *repository) encode(o interface {
	Encode(plumbing.EncodedObject) error
}) plumbing.Hash {
	r.t.Helper()
	e := r.store.NewEncodedObject()
	r.must(o.Encode(e))
	h, err := r.store.SetEncodedObject(e)
	r.must(err)
	return h
}

func (r *repository) blob(text string) (plumbing.Hash, filemode.FileMode) {
	mode := filemode.Regular
	if target, ok := strings.CutPrefix(text, "-> "); ok {
		mode, text = filemode.Symlink, target
	} else if strings.HasPrefix(text, "#!") {
		mode = filemode.Executable
	}
	e := r.store.NewEncodedObject()
	e.SetType(plumbing.BlobObject)
	w, err := e.Writer()
	r.must(err)
	_, err = w.Write([]byte(text))
	r.must(err)
	h, err := r.store.SetEncodedObject(e)
	r.must(err)
	return h, mode
}

// tree writes the tree of files with a prefix.
func (r *repository) tree(files map[string]string, prefix string) plumbing.Hash {
	r.t.Helper()
	t := &object.Tree{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		base, _, dir := strings.Cut(rest, "/")
		if dir {
			if !slices.ContainsFunc(t.Entries, func(e object.TreeEntry) bool { return e.Name == base }) {
				t.Entries = append(t.Entries, object.TreeEntry{Name: base, Mode: filemode.Dir, Hash: r.tree(files, prefix+base+"/")})
			}
			continue
		}
		h, mode := r.blob(files[name])
		t.Entries = append(t.Entries, object.TreeEntry{Name: base, Mode: mode, Hash: h})
	}
	slices.SortFunc(t.Entries, func(a, b object.TreeEntry) int {
		key := func(e object.TreeEntry) string {
			if e.Mode == filemode.Dir {
				return e.Name + "/"
			}
			return e.Name
		}
		return strings.Compare(key(a), key(b))
	})
	return r.encode(t)
}

// commit writes a commit to a branch.
func (r *repository) commit(branch string, files map[string]string, parents ...plumbing.Hash) plumbing.Hash {
	r.t.Helper()
	r.time = r.time.Add(time.Minute)
	by := object.Signature{Name: "a", Email: "a@example.com", When: r.time}
	h := r.encode(&object.Commit{Author: by, Committer: by, Message: branch, TreeHash: r.tree(files, ""), ParentHashes: parents})
	r.point("refs/heads/"+branch, h.String())
	return h
}

// checkout writes files to the work tree and into the index, with an earlier time than that of the index.
func (r *repository) checkout(files map[string]string) *index.Index {
	r.t.Helper()
	idx := &index.Index{Version: 2}
	at := time.Now().Add(-time.Hour)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		r.write(name, files[name])
		if file := filepath.Join(r.dir, name); !strings.HasPrefix(files[name], "-> ") {
			r.must(os.Chtimes(file, at, at))
		}
		info, err := os.Lstat(filepath.Join(r.dir, name))
		r.must(err)
		h, mode := r.blob(files[name])
		idx.Entries = append(idx.Entries, &index.Entry{Name: name, Hash: h, Mode: mode, Size: uint32(info.Size()), ModifiedAt: info.ModTime()})
	}
	r.must(r.store.SetIndex(idx))
	return idx
}

func (r *repository) base(rev string) (*gitrepo.Base, error) {
	r.t.Helper()
	repo, err := gitrepo.Open(r.dir)
	if err != nil {
		return nil, err
	}
	r.t.Cleanup(func() { repo.Close() })
	return repo.Base(context.Background(), rev)
}

// changes returns the changes since a revision, a line each.
func (r *repository) changes(rev string) string {
	r.t.Helper()
	base, err := r.base(rev)
	r.must(err)
	changes, err := base.Changes(context.Background())
	r.must(err)
	return lines(changes)
}

func lines(changes []gitrepo.Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.Kind.String()+" "+c.Path)
	}
	return strings.Join(all, "\n")
}

func TestChanges(t *testing.T) {
	files := map[string]string{"README.md": "read", "operators/a/ci.yaml": "a", "operators/a/1.0.0/csv.yaml": "csv", "operators/a.b": "x",
		"bin/run": "#!x", "link": "-> README.md", "zz": "long name after all"}
	for name, c := range map[string]struct {
		edit func(r *repository)
		want string
	}{
		"nothing":   {func(*repository) {}, ""},
		"unstaged":  {func(r *repository) { r.write("README.md", "else") }, "modified README.md"},
		"untracked": {func(r *repository) { r.write("new/x", "") }, "added new/x"},
		"deleted":   {func(r *repository) { r.must(os.RemoveAll(filepath.Join(r.dir, "operators/a"))) }, "deleted operators/a/1.0.0/csv.yaml\ndeleted operators/a/ci.yaml"},
		"touched":   {func(r *repository) { r.write("README.md", "read") }, ""},
		"staged, then as before": {func(r *repository) {
			h, mode := r.blob("else")
			r.must(r.store.SetIndex(&index.Index{Version: 2, Entries: []*index.Entry{{Name: "zz", Hash: h, Mode: mode}}}))
		}, ""},
		"committed since": {func(r *repository) {
			more := maps.Clone(files)
			more["operators/b/ci.yaml"], more["zz"] = "b", "other"
			delete(more, "README.md")
			r.must(os.Remove(filepath.Join(r.dir, "README.md")))
			r.must(os.Remove(filepath.Join(r.dir, "link")))
			parent, err := r.store.Reference("refs/heads/main")
			r.must(err)
			r.point("refs/heads/old", parent.Hash().String())
			r.commit("main", more, parent.Hash())
			r.checkout(more)
		}, "deleted README.md\nadded operators/b/ci.yaml\nmodified zz"},
		"a program": {func(r *repository) { r.must(os.Chmod(filepath.Join(r.dir, "zz"), 0o755)) }, "modified zz"},
		"a program, without modes": {func(r *repository) {
			r.must(os.Chmod(filepath.Join(r.dir, "zz"), 0o755))
			r.write(".git/config", "[core]\n\tfilemode = false\n")
		}, ""},
		"a link elsewhere": {func(r *repository) {
			r.must(os.Remove(filepath.Join(r.dir, "link")))
			r.write("link", "-> /etc/passwd")
		}, "modified link"},
		"a link in place of a file": {func(r *repository) { r.must(os.Remove(filepath.Join(r.dir, "zz"))); r.write("zz", "-> README.md") }, "modified zz"},
		"a link in place of a directory is not followed": {func(r *repository) {
			r.must(os.Rename(filepath.Join(r.dir, "operators/a"), filepath.Join(r.dir, "operators/c")))
			r.write("operators/a", "-> c")
		}, "added operators/a\ndeleted operators/a/1.0.0/csv.yaml\ndeleted operators/a/ci.yaml\nadded operators/c/1.0.0/csv.yaml\nadded operators/c/ci.yaml"},
		"a loop of links":                {func(r *repository) { r.write("loop", "-> loop/x"); r.write("up", "-> ..") }, "added loop\nadded up"},
		"a directory in place of a file": {func(r *repository) { r.must(os.Remove(filepath.Join(r.dir, "zz"))); r.write("zz/x", "") }, "deleted zz\nadded zz/x"},
		"a file in place of a directory": {func(r *repository) { r.must(os.RemoveAll(filepath.Join(r.dir, "bin"))); r.write("bin", "") }, "added bin\ndeleted bin/run"},
		"control characters in names":    {func(r *repository) { r.write("a\n\x1b[1m", "") }, "added a\n\x1b[1m"},
		"ignored": {func(r *repository) {
			r.write(".gitignore", "*.o\n!keep.o\n/top\nbuild/\nlogs/**/x\n#y\nspace  \n")
			r.write("one/.gitignore", "?\nü*\n")
			r.write("operators/.gitignore", "deep\r\n!b.o\n")
			for _, f := range []string{"x.o", "d/x.o", "d/keep.o", "top", "d/top", "build/x", "d/build/x", "logs/x", "logs/a/b/x", "logs/a/y", "#y", "space",
				"operators/deep/x", "operators/b.o", "deep", "excluded/z", "one/1", "one/ä", "one/üx"} {
				r.write(f, "")
			}
			r.write(".git/info/exclude", "excluded\n")
		}, "added #y\nadded .gitignore\nadded d/keep.o\nadded d/top\nadded deep\nadded logs/a/y\nadded one/.gitignore\nadded one/ä\nadded operators/.gitignore\nadded operators/b.o"},
		"tracked and ignored": {func(r *repository) {
			r.write(".git/info/exclude", "*\n")
			r.write("zz", "?")
			r.write("operators/n", "")
		}, "modified zz"},
		"another repository": {func(r *repository) { r.write("other/.git/HEAD", ""); r.write("other/x", "") }, ""},
		"not in a sparse checkout": {func(r *repository) {
			idx, err := r.store.Index()
			r.must(err)
			idx.Version = 3
			for _, e := range idx.Entries {
				e.SkipWorktree = strings.HasPrefix(e.Name, "operators/a/") || e.Name == "zz"
			}
			r.must(r.store.SetIndex(idx))
			r.must(os.RemoveAll(filepath.Join(r.dir, "operators/a")))
			r.must(os.Remove(filepath.Join(r.dir, "zz")))
		}, ""},
		"a change of the same size while the index was written": {func(r *repository) {
			r.write("zz", "LONG name after all")
			info, err := os.Stat(filepath.Join(r.dir, ".git/index"))
			r.must(err)
			idx, err := r.store.Index()
			r.must(err)
			idx.Entries[len(idx.Entries)-1].ModifiedAt = info.ModTime()
			r.must(r.store.SetIndex(idx))
			r.must(os.Chtimes(filepath.Join(r.dir, "zz"), info.ModTime(), info.ModTime()))
			r.must(os.Chtimes(filepath.Join(r.dir, ".git/index"), info.ModTime(), info.ModTime()))
		}, "modified zz"},
		"a conflict": {func(r *repository) {
			idx, err := r.store.Index()
			r.must(err)
			last := idx.Entries[len(idx.Entries)-1]
			ours, theirs := *last, *last
			ours.Stage, theirs.Stage = index.OurMode, index.TheirMode
			idx.Entries = append(idx.Entries[:len(idx.Entries)-1], &ours, &theirs)
			r.must(r.store.SetIndex(idx))
			r.write("zz", "<<<<<<<")
		}, "modified zz"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := create(t)
			r.commit("main", files)
			r.point("refs/heads/old", r.head())
			r.checkout(files)
			c.edit(r)
			if got := r.changes("old"); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func (r *repository) head() string {
	ref, err := r.store.Reference("refs/heads/main")
	r.must(err)
	return ref.Hash().String()
}

// A file whose time and size are those in the index is not read, unless a tree differs.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	r := create(t)
	files := map[string]string{"a": "text"}
	r.commit("main", files)
	r.checkout(files)
	info, err := os.Stat(filepath.Join(r.dir, "a"))
	r.must(err)
	r.write("a", "TEXT")
	r.must(os.Chtimes(filepath.Join(r.dir, "a"), info.ModTime(), info.ModTime()))
	if got := r.changes("HEAD"); got != "" {
		t.Errorf("got %s", got)
	}
}

func TestRevisions(t *testing.T) {
	r := create(t)
	first := r.commit("main", map[string]string{"a": "1"})
	second := r.commit("main", map[string]string{"a": "2"}, first)
	side := r.commit("side", map[string]string{"a": "s"}, first)
	merge := r.commit("main", map[string]string{"a": "3"}, second, side)
	tag := r.encode(&object.Tag{Name: "v1", Target: second, TargetType: plumbing.CommitObject, Tagger: object.Signature{When: r.time}})
	r.point("refs/tags/v1", tag.String())
	r.point("refs/remotes/origin/main", first.String())
	r.point("refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main")
	r.write(".git/packed-refs", "# pack-refs with: peeled fully-peeled sorted\n"+second.String()+" refs/heads/packed\n")
	r.write(".git/FETCH_HEAD", second.String()+"\t\tbranch 'main' of example.com:x\n")
	r.point("refs/heads/tree", r.tree(map[string]string{"x": "y"}, "").String())
	r.point("refs/heads/loop", "ref: refs/heads/loop")
	for rev, want := range map[string]any{
		"HEAD": merge, "@": merge, "main": merge, "refs/heads/main": merge, "heads/main": merge, merge.String(): merge, merge.String()[:7]: merge,
		"HEAD~1": second, "HEAD~2": first, "HEAD^": second, "HEAD^2": side, "HEAD^2~1": first, "HEAD^^": first, "HEAD~0": merge, "@~": second,
		"v1": second, "v1~1": first, "origin/main": first, "origin": first, "packed": second, "FETCH_HEAD": second, "side": side,
		"nothing":      `the repository has no revision "nothing"`,
		"HEAD~9":       `revision "HEAD~9": commit ` + first.String() + ` has 0 parents`,
		"HEAD^3":       "has 2 parents",
		"main:a":       "has no revision",
		"a..b":         "has no revision",
		"../HEAD":      "has no revision",
		"config":       "has no revision",
		"":             "has no revision",
		"HEAD~x":       "has no revision",
		"loop":         "has no revision",
		"tree":         `which "tree" names, is a tree and no commit`,
		"HEAD~9999999": "goes back too far",
		"0123456789012345678901234567890123456789": "is not in the repository",
	} {
		base, err := r.base(rev)
		switch want := want.(type) {
		case plumbing.Hash:
			if err != nil || base.Commit() != want.String() {
				t.Errorf("%s: got %v, %v, want %s", rev, base, err, want)
			}
		case string:
			if err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Input {
				t.Errorf("%s: got %v, want %s", rev, err, want)
			}
		}
	}
}

func TestMergeBase(t *testing.T) {
	r := create(t)
	file := func(text string) map[string]string { return map[string]string{"a": text} }
	root := r.commit("root", file("0"))
	fork := r.commit("fork", file("1"), root)
	r.commit("other", file("x"))
	upstream := r.commit("upstream", file("2"), fork)
	r.commit("main", file("3"), fork)
	for branch, want := range map[string]plumbing.Hash{"upstream": fork, "fork": fork, "root": root} {
		if base, err := r.base(branch); err != nil || base.Commit() != want.String() {
			t.Errorf("%s: got %v, %v, want %s", branch, base, err, want)
		}
	}
	if _, err := r.base("other"); err == nil || !strings.Contains(err.Error(), "no commit in common") || fault.AdvisorOf(err) != nil {
		t.Errorf("got %v", err)
	}
	// A branch that was merged into the other one since.
	main, err := r.store.Reference("refs/heads/main")
	r.must(err)
	r.commit("upstream", file("4"), upstream, main.Hash())
	if base, err := r.base("upstream"); err != nil || base.Commit() != main.Hash().String() {
		t.Errorf("got %v, %v", base, err)
	}
	r.write(".git/shallow", main.Hash().String()+"\n"+upstream.String()+"\n")
	r.point("refs/heads/upstream", upstream.String())
	for rev, want := range map[string]string{"upstream": "no commit in common in this shallow clone", "HEAD~1": "beyond the commits of this shallow clone"} {
		_, err := r.base(rev)
		if a := fault.AdvisorOf(err); err == nil || !strings.Contains(err.Error(), want) || a == nil || !strings.Contains(a.Hint(), "git fetch --unshallow") {
			t.Errorf("%s: got %v, %v", rev, err, a)
		}
	}
}

// The work tree of "git worktree add" has a file in place of .git; Open looks upwards.
func TestOpen(t *testing.T) {
	r := create(t)
	files := map[string]string{"operators/a/x": "1"}
	h := r.commit("main", files)
	r.checkout(files)
	other := t.TempDir()
	r.write(".git/worktrees/other/HEAD", h.String()+"\n")
	r.write(".git/worktrees/other/commondir", "../..\n")
	r.must(os.WriteFile(filepath.Join(other, ".git"), []byte("gitdir: "+filepath.Join(r.dir, ".git/worktrees/other")+"\n"), 0o644))
	r.must(os.MkdirAll(filepath.Join(other, "deep/er"), 0o755))
	repo, err := gitrepo.Open(filepath.Join(other, "deep/er"))
	r.must(err)
	defer repo.Close()
	if got, err := filepath.EvalSymlinks(repo.Root()); err != nil || got != eval(t, other) {
		t.Errorf("got %s, %v, want %s", got, err, other)
	}
	base, err := repo.Base(context.Background(), "main")
	r.must(err)
	changes, err := base.Changes(context.Background())
	if err != nil || lines(changes) != "deleted operators/a/x" {
		t.Errorf("got %v, %v", changes, err)
	}

	r.must(os.WriteFile(filepath.Join(other, ".git"), []byte("something else"), 0o644))
	if _, err := gitrepo.Open(other); err == nil || !strings.Contains(err.Error(), `does not begin with "gitdir: "`) {
		t.Errorf("got %v", err)
	}
	if _, err := gitrepo.Open(t.TempDir()); !errors.Is(err, gitrepo.ErrNone) {
		t.Errorf("got %v", err)
	}
}

func eval(t *testing.T, dir string) string {
	out, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatCannotBeRead(t *testing.T) {
	files := map[string]string{"dir/a": "text"}
	stored := func(r *repository, h plumbing.Hash) string {
		return filepath.Join(r.dir, ".git/objects", h.String()[:2], h.String()[2:])
	}
	for name, c := range map[string]struct {
		edit       func(r *repository)
		want, hint string
	}{
		"SHA-256": {func(r *repository) {
			r.write(".git/config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n")
		}, "its objects are named by sha256", ""},
		"reftable":  {func(r *repository) { r.write(".git/config", "[extensions]\n\trefStorage = reftable\n") }, "its branches are in the form reftable", ""},
		"config":    {func(r *repository) { r.write(".git/config", "[core\n") }, "its config: ", ""},
		"no commit": {func(r *repository) { r.must(os.Remove(filepath.Join(r.dir, ".git/refs/heads/main"))) }, "the branch of the work tree has no commit", ""},
		"a missing commit": {func(r *repository) { r.point("refs/heads/main", strings.Repeat("1", 40)) },
			`object ` + strings.Repeat("1", 40) + `, which "HEAD" names, is not in the repository`, "git fetch"},
		"a missing tree": {func(r *repository) { r.must(os.Remove(stored(r, r.tree(files, "dir/")))) },
			`object fa9ee080c0068b56131f41877fe4d6d99842ae40, the directory "dir", is not in the repository`, "git fetch"},
		"a missing tree of a partial clone": {func(r *repository) {
			r.must(os.Remove(stored(r, r.tree(files, ""))))
			r.write(".git/config", "[extensions]\n\tpartialClone = origin\n")
		}, `the directory ".", is not in the repository`, "partial clone"},
		"a damaged tree": {func(r *repository) {
			file := stored(r, r.tree(files, ""))
			r.must(os.Chmod(file, 0o644))
			r.must(os.WriteFile(file, []byte("no zlib"), 0o644))
		}, `the directory ".": integrity`, "git fsck"},
		"a damaged index": {func(r *repository) { r.write(".git/index", "DIRC\x00\x00\x00\x02\x00\x00\x10\x00") }, "read the index of the git repository", "git reset"},
		"a name in the index that leads out": {func(r *repository) {
			r.must(r.store.SetIndex(&index.Index{Version: 3, Entries: []*index.Entry{{Name: "../x", SkipWorktree: true}}}))
		}, `has an entry named "../x"`, ""},
		"a name that leads out": {func(r *repository) {
			e := r.store.NewEncodedObject()
			e.SetType(plumbing.TreeObject)
			w, err := e.Writer()
			r.must(err)
			_, err = w.Write([]byte("100644 ..\x00" + strings.Repeat("x", 20)))
			r.must(err)
			tree, err := r.store.SetEncodedObject(e)
			r.must(err)
			r.point("refs/heads/main", r.encode(&object.Commit{TreeHash: tree}).String())
		}, `has an entry named ".."`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := create(t)
			r.commit("main", files)
			r.checkout(map[string]string{"dir/b": "other"})
			c.edit(r)
			base, err := r.base("HEAD")
			if err == nil {
				_, err = base.Changes(context.Background())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if a := fault.AdvisorOf(err); c.hint != "" && (a == nil || !strings.Contains(a.Hint(), c.hint)) {
				t.Errorf("got hint %v, want %s", a, c.hint)
			}
		})
	}
}

func TestFS(t *testing.T) {
	r := create(t)
	r.commit("main", map[string]string{"a": "text", "a.b": "", "dir/sub/b": "more", "dir/run": "#!x"})
	base, err := r.base("HEAD")
	r.must(err)
	if err := fstest.TestFS(base.FS(), "a", "a.b", "dir/sub/b", "dir/run"); err != nil {
		t.Error(err)
	}
	r.commit("main", map[string]string{"a": "text", "link": "-> a", "links": "-> .", "huge": strings.Repeat("x", 4<<20+1)})
	base, err = r.base("HEAD")
	r.must(err)
	for name, want := range map[string]string{"link": "is not a regular file", "links/a": "file does not exist", "huge": "limit exceeded",
		"a/b": "file does not exist", "none": "file does not exist", "../a": "invalid argument"} {
		if _, err := fs.ReadFile(base.FS(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	if info, err := fs.Stat(base.FS(), "huge"); err != nil || info.Size() != 4<<20+1 {
		t.Errorf("got %v, %v", info, err)
	}
	if info, err := fs.Stat(base.FS(), "link"); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("got %v, %v", info, err)
	}
}

func TestReadChanges(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct{ text, want string }{
		"nothing":               {"", ""},
		"names":                 {"b\na/x y\n", "unknown a/x y\nunknown b"},
		"no newline at the end": {"a", "unknown a"},
		"CRLF":                  {"a\r\nM\tb\r\n", "unknown a\nmodified b"},
		"quoted names":          {`"\303\244\t\"\\"` + "\n", "unknown ä\t\"\\"},
		"statuses":              {"A\ta\nD\tb\nM\tc\nT\td\nR100\te\tf\nC75\tg\th\nU\ti\n", "added a\ndeleted b\nmodified c\nmodified d\ndeleted e\nadded f\nadded h\nmodified i"},
		"quoted with a status":  {"R90\t\"\\303\\244\"\tb\n", "added b\ndeleted ä"},
		"-z names":              {"a\nb\x00c\x00", "unknown a\nb\nunknown c"},
		"-z statuses":           {"M\x00a\x00R100\x00b\x00c\x00C50\x00d\x00e\x00A\x00\"q\"\x00", "added \"q\"\nmodified a\ndeleted b\nadded c\nadded e"},
		"renamed and added":     {"R100\ta\tb\nA\ta\n", "modified a\nadded b"},
		"twice":                 {"a\na\n", "unknown a"},
		"an absolute name":      {"a\n/b\n", `!line 2: invalid: the name "/b" is not a path below the root`},
		"..":                    {"../b\n", `!line 1: invalid: the name "../b" is not a path below`},
		"in the middle":         {"a/../../b\n", `!line 1: invalid`},
		"the root":              {".\n", `!line 1: invalid`},
		"an empty name":         {"a\n\nb\n", "!line 2: invalid: an empty name"},
		"an empty quoted name":  {"\"\"\n", "!line 1: invalid: an empty name"},
		"a broken quote":        {"\"a\n", "!line 1: invalid: the name \"\\\"a\" is not quoted"},
		"an unknown status":     {"Q\ta\n", "!line 1: invalid: is neither"},
		"a status too few":      {"R100\ta\n", "!line 1: invalid: is neither"},
		"-z too short":          {"M\x00a\x00R100\x00b\x00", "!entry 3: invalid: is neither"},
		"a long name":           {long, "!line 1: invalid: limit exceeded: a name of more than"},
		"many lines":            {strings.Repeat("a\n", 1_000_001), "!limit exceeded: more than 1000000 lines"},
	} {
		changes, err := gitrepo.ReadChanges(strings.NewReader(c.text))
		if want, ok := strings.CutPrefix(c.want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
		} else if err != nil || lines(changes) != c.want {
			t.Errorf("%s: got %v\n%s\nwant\n%s", name, err, lines(changes), c.want)
		}
	}
}

func TestDiff(t *testing.T) {
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for i, files := range []map[string]string{
		{"same": "a", "size": "aa", "text": "ab", "gone/x": "", "kind": "a", ".git/HEAD": "x", "link": "-> same", "other": "-> same", "up": "-> ../.."},
		{"same": "a", "size": "a", "text": "ac", "new/x": "", "kind/x": "a", "link": "-> same", "other": "-> text", "up": "-> ../.."},
	} {
		r := &repository{t: t, dir: dirs[i]}
		for name, text := range files {
			r.write(name, text)
		}
	}
	changes, err := gitrepo.Diff(context.Background(), os.DirFS(dirs[0]), os.DirFS(dirs[1]))
	if want := "deleted gone/x\ndeleted kind\nadded kind/x\nadded new/x\nmodified other\nmodified size\nmodified text"; err != nil || lines(changes) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, lines(changes), want)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := gitrepo.Diff(ended, os.DirFS(dirs[0]), os.DirFS(dirs[1])); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Whatever is read, its names lead nowhere out of the repository.
func FuzzReadChanges(f *testing.F) {
	f.Add("M\ta\nR100\tb\t\"\\303\\244\"\n")
	f.Add("A\x00a\x00C50\x00b\x00c\x00")
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := gitrepo.ReadChanges(strings.NewReader(text))
		for i, c := range changes {
			if err != nil || !fs.ValidPath(strings.ToValidUTF8(c.Path, "_")) || c.Path == "." || i > 0 && changes[i-1].Path >= c.Path {
				t.Errorf("%q: got %v, %v", text, changes, err)
			}
		}
	})
}
