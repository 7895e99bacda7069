package gitrepo_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

	"github.com/operator-bindery/bindery/internal/bundlefs"
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

// stage writes the index.
func (r *repository) stage(files map[string]string) *index.Index {
	r.t.Helper()
	idx := &index.Index{Version: 2}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h, mode := r.blob(files[name])
		idx.Entries = append(idx.Entries, &index.Entry{Name: name, Hash: h, Mode: mode})
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
		edit map[string]string // "": deleted
		more func(r *repository, idx *index.Index)
		want string
	}{
		"nothing":                           {},
		"edited":                            {edit: map[string]string{"README.md": "else"}, want: "modified README.md"},
		"new":                               {edit: map[string]string{"new/x": "x"}, want: "added new/x"},
		"deleted":                           {edit: map[string]string{"operators/a/ci.yaml": "", "operators/a/1.0.0/csv.yaml": ""}, want: "deleted operators/a/1.0.0/csv.yaml\ndeleted operators/a/ci.yaml"},
		"renamed":                           {edit: map[string]string{"zz": "", "a": "long name after all"}, want: "added a\ndeleted zz"},
		"a program":                         {edit: map[string]string{"README.md": "#!read"}, want: "modified README.md"},
		"a link elsewhere":                  {edit: map[string]string{"link": "-> /etc/passwd"}, want: "modified link"},
		"a link in place of a file":         {edit: map[string]string{"zz": "-> README.md"}, want: "modified zz"},
		"a link in place of a directory":    {edit: map[string]string{"bin/run": "", "bin": "-> operators"}, want: "added bin\ndeleted bin/run"},
		"a directory in place of a file":    {edit: map[string]string{"zz": "", "zz/x": "x"}, want: "deleted zz\nadded zz/x"},
		"control characters in names":       {edit: map[string]string{"a\n\x1b[1m": "x"}, want: "added a\n\x1b[1m"},
		"what is not staged does not count": {more: func(r *repository, _ *index.Index) { r.write("zz", "else"); r.write("new", "") }},
		"nor what is to be added later": {more: func(r *repository, idx *index.Index) {
			idx.Version, idx.Entries = 3, append(idx.Entries, &index.Entry{Name: "new", Mode: filemode.Regular, IntentToAdd: true})
		}},
		"not in a sparse checkout": {more: func(r *repository, idx *index.Index) { idx.Version, idx.Entries[0].SkipWorktree = 3, true }},
		"a submodule": {more: func(r *repository, idx *index.Index) {
			idx.Entries = append(idx.Entries, &index.Entry{Name: "zzz", Mode: filemode.Submodule, Hash: plumbing.NewHash(r.head())})
		}, want: "added zzz"},
		"a conflict": {more: func(r *repository, idx *index.Index) {
			last := idx.Entries[len(idx.Entries)-1]
			ours, theirs := *last, *last
			ours.Stage, theirs.Stage = index.OurMode, index.TheirMode
			idx.Entries = append(idx.Entries[:len(idx.Entries)-1], &ours, &theirs)
		}, want: "modified zz"},
	} {
		t.Run(name, func(t *testing.T) {
			r := create(t)
			first := r.commit("main", files)
			r.point("refs/heads/old", first.String())
			now := maps.Clone(files)
			maps.Copy(now, c.edit)
			maps.DeleteFunc(now, func(_, text string) bool { return text == "" })
			idx := r.stage(now)
			if c.more != nil {
				c.more(r, idx)
				r.must(r.store.SetIndex(idx))
			}
			if got := r.changes("old"); got != c.want {
				t.Errorf("staged: got:\n%s\nwant:\n%s", got, c.want)
			}
			if c.more == nil {
				r.commit("main", now, first)
				if got := r.changes("old"); got != c.want {
					t.Errorf("committed: got:\n%s\nwant:\n%s", got, c.want)
				}
			}
		})
	}
}

func (r *repository) head() string {
	ref, err := r.store.Reference("refs/heads/main")
	r.must(err)
	return ref.Hash().String()
}

// text returns the file "a" of the merge base with a revision.
func (r *repository) text(rev string) (string, error) {
	base, err := r.base(rev)
	if err != nil {
		return "", err
	}
	text, err := fs.ReadFile(base.FS(), "a")
	return string(text), err
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
	r.point("refs/heads/loop", "ref: refs/heads/loop")
	r.point("refs/heads/tree", r.tree(map[string]string{"x": "y"}, "").String())
	for rev, want := range map[string]string{
		"HEAD": "3", "main": "3", "refs/heads/main": "3", "heads/main": "3", merge.String(): "3", tag.String(): "2",
		"v1": "2", "origin/main": "1", "origin": "1", "packed": "2", "FETCH_HEAD": "2", "side": "s", first.String(): "1",
		"nothing": `!the repository has no revision "nothing"`,
		"main:a":  "!has no revision", "a..b": "!has no revision", "../HEAD": "!has no revision", "config": "!has no revision", "": "!has no revision",
		merge.String()[:7]: "!has no revision", "loop": "!has no revision",
		"tree": `!revision "tree": commit `,
		"0123456789012345678901234567890123456789": "!object not found",
	} {
		got, err := r.text(rev)
		if want, ok := strings.CutPrefix(want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Input || fault.AdvisorOf(err) == nil {
				t.Errorf("%s: got %v, want %s", rev, err, want)
			}
		} else if err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %s", rev, got, err, want)
		}
	}
}

func TestMergeBase(t *testing.T) {
	r := create(t)
	file := func(text string) map[string]string { return map[string]string{"a": text} }
	root := r.commit("root", file("root"))
	fork := r.commit("fork", file("fork"), root)
	r.commit("other", file("x"))
	upstream := r.commit("upstream", file("2"), fork)
	main := r.commit("main", file("main"), fork)
	for branch, want := range map[string]string{"upstream": "fork", "fork": "fork", "root": "root"} {
		if got, err := r.text(branch); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %s", branch, got, err, want)
		}
	}
	if _, err := r.text("other"); err == nil || !strings.Contains(err.Error(), "no commit in common") {
		t.Errorf("got %v", err)
	}
	// A branch that was merged into the other one since.
	r.commit("upstream", file("4"), upstream, main)
	if got, err := r.text("upstream"); err != nil || got != "main" {
		t.Errorf("got %v, %v", got, err)
	}
	r.point("refs/heads/upstream", upstream.String())
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	repo, err := gitrepo.Open(r.dir)
	r.must(err)
	defer repo.Close()
	if _, err := repo.Base(ended, "upstream"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// Shallow clones: one that has the common commit, and one that does not.
	r.must(os.Remove(r.stored(root)))
	if _, err := r.text("upstream"); err == nil {
		t.Error("a parent that is missing is found")
	}
	r.write(".git/shallow", fork.String()+"\n")
	if got, err := r.text("upstream"); err != nil || got != "fork" {
		t.Errorf("got %v, %v", got, err)
	}
	r.write(".git/shallow", main.String()+"\n"+upstream.String()+"\n")
	_, err = r.text("upstream")
	if a := fault.AdvisorOf(err); err == nil || a == nil || !strings.Contains(err.Error(), "no commit in common") || !strings.Contains(a.Hint(), "git fetch --unshallow") {
		t.Errorf("got %v, %v", err, a)
	}
}

// The work tree of "git worktree add" has a file in place of .git; Open looks upwards.
func TestOpen(t *testing.T) {
	r := create(t)
	h := r.commit("main", map[string]string{"operators/a/x": "1"})
	other := t.TempDir()
	r.write(".git/worktrees/other/HEAD", h.String()+"\n")
	r.write(".git/worktrees/other/commondir", "../..\n")
	r.must(os.WriteFile(filepath.Join(other, ".git"), []byte("gitdir: "+filepath.Join(r.dir, ".git/worktrees/other")+"\n"), 0o644))
	r.must(os.MkdirAll(filepath.Join(other, "deep/er"), 0o755))
	repo, err := gitrepo.Open(filepath.Join(other, "deep/er"))
	r.must(err)
	defer repo.Close()
	if repo.Root() != other {
		t.Errorf("got %s, want %s", repo.Root(), other)
	}
	base, err := repo.Base(context.Background(), "main")
	r.must(err)
	changes, err := base.Changes(context.Background())
	if err != nil || lines(changes) != "deleted operators/a/x" {
		t.Errorf("got %v, %v", changes, err)
	}

	for _, text := range []string{"something else", "gitdir: ", ""} {
		r.must(os.WriteFile(filepath.Join(other, ".git"), []byte(text), 0o644))
		if _, err := gitrepo.Open(other); err == nil || !strings.Contains(err.Error(), `does not begin with "gitdir: " and a directory`) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := gitrepo.Open(t.TempDir()); !errors.Is(err, gitrepo.ErrNone) {
		t.Errorf("got %v", err)
	}
}

// stored returns the file of an object.
func (r *repository) stored(h plumbing.Hash) string {
	return filepath.Join(r.dir, ".git/objects", h.String()[:2], h.String()[2:])
}

// raw writes a tree with some entries, of which each is a directory.
func (r *repository) raw(h plumbing.Hash, names ...string) plumbing.Hash {
	r.t.Helper()
	e := r.store.NewEncodedObject()
	e.SetType(plumbing.TreeObject)
	w, err := e.Writer()
	r.must(err)
	for _, name := range names {
		_, err = w.Write([]byte("40000 " + name + "\x00" + string(h[:])))
		r.must(err)
	}
	tree, err := r.store.SetEncodedObject(e)
	r.must(err)
	return tree
}

func TestWhatCannotBeRead(t *testing.T) {
	files := map[string]string{"dir/a": "text"}
	tree := func(r *repository, h plumbing.Hash) {
		r.point("refs/heads/main", r.encode(&object.Commit{TreeHash: h}).String())
	}
	for name, c := range map[string]struct {
		edit       func(r *repository)
		want, hint string
	}{
		"SHA-256": {func(r *repository) {
			r.write(".git/config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n")
		}, "are named by sha256, and only sha1", ""},
		"config":           {func(r *repository) { r.write(".git/config", "[core\n") }, "the config of the git repository", ""},
		"no commit":        {func(r *repository) { r.must(os.Remove(filepath.Join(r.dir, ".git/refs/heads/main"))) }, `no revision "HEAD"`, "a branch with a commit"},
		"a missing commit": {func(r *repository) { r.point("refs/heads/main", strings.Repeat("1", 40)) }, `revision "HEAD": commit ` + strings.Repeat("1", 40), "git fetch"},
		"a missing tree": {func(r *repository) { r.must(os.Remove(r.stored(r.tree(files, "dir/")))) },
			`the directory "/dir/": tree fa9ee080c0068b56131f41877fe4d6d99842ae40: invalid: object not found`, "git fetch"},
		"a damaged tree": {func(r *repository) {
			file := r.stored(r.tree(files, ""))
			r.must(os.Chmod(file, 0o644))
			r.must(os.WriteFile(file, []byte("no zlib"), 0o644))
		}, `the directory "/": tree `, "git fsck"},
		"a damaged index": {func(r *repository) { r.write(".git/index", "DIRC\x00\x00\x00\x02\x00\x00\x10\x00") }, "read the index of the git repository", "git reset"},
		"a name in the index that leads out": {func(r *repository) {
			r.must(r.store.SetIndex(&index.Index{Version: 2, Entries: []*index.Entry{{Name: "../x"}}}))
		}, `the name "../x"`, ""},
		"a name in the index in the repository": {func(r *repository) {
			r.must(r.store.SetIndex(&index.Index{Version: 2, Entries: []*index.Entry{{Name: "x/.GIT/config"}}}))
		}, `the name "x/.GIT/config"`, ""},
		"a name that leads out": {func(r *repository) { tree(r, r.raw(r.raw(plumbing.ZeroHash), "..")) }, `the name ".."`, ""},
		"the name .":            {func(r *repository) { tree(r, r.raw(r.raw(plumbing.ZeroHash), ".")) }, `the name "."`, ""},
		"a name with a slash":   {func(r *repository) { tree(r, r.raw(r.raw(plumbing.ZeroHash), "a/b")) }, `the name "a\x00b"`, ""},
		"an absolute name":      {func(r *repository) { tree(r, r.raw(r.raw(plumbing.ZeroHash), "/etc")) }, `the name "\x00etc"`, ""},
		"the name .git":         {func(r *repository) { tree(r, r.raw(r.raw(plumbing.ZeroHash), ".git")) }, `the name ".git"`, ""},
		"a deep tree": {func(r *repository) {
			h := r.raw(plumbing.ZeroHash)
			for range 200 {
				h = r.raw(h, "d")
			}
			tree(r, h)
		}, "limit exceeded", ""},
		"a small tree with many names": {func(r *repository) {
			many := map[string]string{}
			for i := range 1000 {
				many[strconv.Itoa(i)] = "x"
			}
			tree(r, r.raw(r.tree(many, ""), slices.Sorted(maps.Keys(many))...))
		}, "limit exceeded", ""},
		"a large tree": {func(r *repository) { tree(r, r.raw(plumbing.ZeroHash, strings.Repeat("x", 16<<20))) }, "limit exceeded: more than 16777216 bytes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := create(t)
			r.commit("main", files)
			r.stage(map[string]string{"dir/b": "other"})
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
	r.commit("main", map[string]string{"a": "text", "a.b": "", "dir/sub/b": "more", "dir/run": "#!x", "link": "-> a"})
	base, err := r.base("HEAD")
	r.must(err)
	if err := fstest.TestFS(base.FS(), "a", "a.b", "dir/sub/b", "dir/run", "link"); err != nil {
		t.Error(err)
	}
	r.commit("main", map[string]string{"a": "text", "links": "-> .", "huge": strings.Repeat("x", bundlefs.MaxFile+1), "gone": "gone"})
	h, _ := r.blob("gone")
	r.must(os.Remove(r.stored(h)))
	base, err = r.base("HEAD")
	r.must(err)
	for name, want := range map[string]string{"links": "is not a regular file", "links/a": "file does not exist", "huge": "limit exceeded",
		"gone": "object not found", "a/b": "file does not exist", "none": "file does not exist", "../a": "invalid argument"} {
		if _, err := bundlefs.ReadFile(base.FS(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestReadChanges(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":               {"", ""},
		"names":                 {"b\na/x y\n", "unknown a/x y\nunknown b"},
		"no newline at the end": {"a", "unknown a"},
		"CRLF":                  {"A\ta\r\nM\tb\r\n", "added a\nmodified b"},
		"empty lines":           {"a\n\nb\n", "unknown a\nunknown b"},
		"a file like a status":  {"M\na\n", "unknown M\nunknown a"},
		"copied and changed":    {"A\ta\nC50\ta\tb\n", "added a\nadded b"},
		"quoted names":          {`"\303\244\t\"\\"` + "\n", "unknown ä\t\"\\"},
		"statuses":              {"A\ta\nD\tb\nM\tc\nT\td\nR100\te\tf\nC75\tg\th\nU\ti\n", "added a\ndeleted b\nmodified c\nmodified d\ndeleted e\nadded f\nadded h\nmodified i"},
		"quoted with a status":  {"R90\t\"\\303\\244\"\tb\n", "added b\ndeleted ä"},
		"-z names":              {"a\nb\x00c\x00", "unknown a\nb\nunknown c"},
		"-z statuses":           {"M\x00a\x00R100\x00b\x00c\x00C50\x00d\x00e\x00A\x00\"q\"\x00", "added \"q\"\nmodified a\ndeleted b\nadded c\nadded e"},
		"renamed and added":     {"R100\ta\tb\nA\ta\n", "modified a\nadded b"},
		"twice":                 {"a\na\n", "unknown a"},
		"an absolute name":      {"a\n/b\n", `!"/b": invalid: the name "/b" is not that of a file below the root`},
		"..":                    {"../b\n", `!the name "../b" is not that`},
		"in the middle":         {"a/../../b\n", `!invalid`},
		"the root":              {".\n", `!invalid`},
		"in the repository":     {"a/.git/config\n", `!invalid`},
		"-z and absolute":       {"M\x00/a\x00", `!the name "/a" is not that`},
		"an empty quoted name":  {"\"\"\n", `!the name "" is not that`},
		"a broken quote":        {"\"a\n", `!"\"a": invalid syntax`},
		"an unknown status":     {"Q\ta\n", "!after 0 files comes neither a name nor a status"},
		"a name among statuses": {"M\ta\nb\nM\tc\n", "!after 1 files comes neither"},
		"a name too few":        {"M\tb\nR100\ta\n", "!after 1 files comes neither"},
		"-z too short":          {"M\x00a\x00R100\x00b\x00", "!after 1 files comes neither"},
		"a deep name":           {strings.Repeat("x/", 5000) + "x", "!limit exceeded"},
		"many names":            {strings.Repeat("a\n", 1_100_000), "!limit exceeded"},
		"a long list":           {strings.Repeat("a\n", 9_000_000), "!limit exceeded: more than 16777216 bytes"},
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
		{"same": "a", "size": "aa", "text": "ab", "gone/x": "", "kind": "a", ".git/HEAD": "x", "sub/.git": "x", "link": "-> same", "up": "-> ../.."},
		{"same": "a", "size": "a", "text": "ac", "new/x": "", "kind/x": "a", "link": "-> text", "sub/x": ""},
	} {
		r := &repository{t: t, dir: dirs[i]}
		for name, text := range files {
			r.write(name, text)
		}
	}
	changes, err := gitrepo.Diff(context.Background(), os.DirFS(dirs[0]), os.DirFS(dirs[1]))
	if want := "deleted gone/x\ndeleted kind\nadded kind/x\nadded new/x\nmodified size\nadded sub/x\nmodified text"; err != nil || lines(changes) != want {
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

func TestUnstaged(t *testing.T) {
	r := create(t)
	r.commit("main", map[string]string{"a/same": "same", "b/elsewhere": "x"})
	r.stage(map[string]string{"a/same": "same", "a/edited": "staged", "a/removed": "x", "b/elsewhere": "x"})
	for name, text := range map[string]string{"a/same": "same", "a/edited": "later", "a/new": "", "b/elsewhere": "other"} {
		r.write(name, text)
	}
	base, err := r.base("main")
	r.must(err)
	_, err = base.Changes(t.Context())
	r.must(err)
	got, err := base.Unstaged(t.Context(), []string{"a", "missing"})
	if want := []string{"a/edited", "a/new", "a/removed"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// A hook of "git commit -a" is called for an index of its own.
func TestIndexOfAHook(t *testing.T) {
	r := create(t)
	r.commit("main", map[string]string{"a": "x"})
	r.stage(map[string]string{"a": "x", "b": "x"})
	r.must(os.Rename(filepath.Join(r.dir, ".git/index"), filepath.Join(r.dir, ".git/index.lock")))
	r.stage(map[string]string{"a": "x"})
	for name, want := range map[string]string{"": "", ".git/index.lock": "added b", filepath.Join(r.dir, ".git/index.lock"): "added b"} {
		t.Setenv("GIT_INDEX_FILE", name)
		if got := r.changes("main"); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
