package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/layers"
)

// knownIn opens a cache in a directory.
func knownIn(t testing.TB, dir string) *Cache {
	t.Helper()
	warn := func(err error) { t.Errorf("cache: %v", err) }
	blobs, err := blobcache.Open(filepath.Join(dir, "blobs"), blobcache.Options{Warn: warn})
	if err != nil {
		t.Fatal(err)
	}
	k, err := NewCache(blobs, []byte("the secret of the tests"), warn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close(); blobs.Close() })
	return k
}

// outcome is the result of reading a catalog: files, error and warnings.
type outcome struct {
	files    []File
	err      string
	warnings []string
}

// read reads a catalog and returns which of its files were parsed after hashing. Without a cache the catalog is read
// completely.
func read(t testing.TB, fsys fs.FS, k *Cache) (outcome, []string) {
	t.Helper()
	how := func(ctx context.Context, fsys fs.FS, o ReadOptions) ([]File, error) {
		files, err := readInPieces(ctx, fsys, o, 0)
		if errors.Is(err, errReadAll) {
			return readWhole(ctx, fsys, o)
		}
		return files, err
	}
	if k == nil {
		how = readWhole
	}
	return readBy(t, fsys, k, how)
}

// readPieces reads a catalog in the smallest pieces without a cache. It reports whether everything had to be read
// again.
func readPieces(t testing.TB, fsys fs.FS) (_ outcome, again bool) {
	t.Helper()
	o, _ := readBy(t, fsys, nil, func(ctx context.Context, fsys fs.FS, o ReadOptions) ([]File, error) {
		files, err := readInPieces(ctx, fsys, o, 0)
		if again = errors.Is(err, errReadAll); again {
			return readWhole(ctx, fsys, o)
		}
		return files, err
	})
	return o, again
}

func readBy(t testing.TB, fsys fs.FS, k *Cache,
	how func(context.Context, fs.FS, ReadOptions) ([]File, error)) (outcome, []string) {
	t.Helper()
	var mu sync.Mutex
	var o outcome
	counted := &countingFS{FS: fsys, opened: map[string]int{}}
	files, err := how(t.Context(), counted,
		ReadOptions{Jobs: 2, Cache: k, Program: "test", Warn: func(at declcfg.Position, text string) {
			mu.Lock()
			defer mu.Unlock()
			o.warnings = append(o.warnings, at.String()+": "+text)
		}})
	if err != nil {
		o.err = err.Error()
	}
	for _, f := range files {
		f.Digest = ""
		o.files = append(o.files, f)
	}
	slices.Sort(o.warnings)
	var parsed []string
	for name, n := range counted.opened {
		if n > 1 {
			parsed = append(parsed, name)
		}
	}
	slices.Sort(parsed)
	return o, parsed
}

// countingFS counts how often files are opened: once for hashing, once more for parsing.
type countingFS struct {
	fs.FS
	mu     sync.Mutex
	opened map[string]int
}

func (c *countingFS) Open(name string) (fs.File, error) {
	c.mu.Lock()
	c.opened[name]++
	c.mu.Unlock()
	f, err := c.FS.Open(name)
	if err == nil {
		if info, serr := f.Stat(); serr == nil && info.IsDir() || strings.HasSuffix(name, declcfg.IgnoreFile) {
			c.mu.Lock()
			delete(c.opened, name)
			c.mu.Unlock()
		}
	}
	return f, err
}

// valid returns the catalog of a small package that can be served.
func valid(name string) string { return strings.ReplaceAll(pkg(name), "@sha256:abc", ":v1") }

// large returns a catalog file that gets a separate note.
func large(text string) string { return text + strings.Repeat("# a comment\n", aloneSize/12+1) }

// mixed interleaves the documents of two packages.
func mixed(p, q string) string {
	var out strings.Builder
	ps, qs := strings.Split(p, "---\n")[1:], strings.Split(q, "---\n")[1:]
	for i := range ps {
		out.WriteString("---\n" + ps[i])
		if p != q {
			out.WriteString("---\n" + qs[i])
		}
	}
	return out.String()
}

// deprecated returns a deprecation of a channel.
func deprecated(pkg, channel string) string {
	return "---\nschema: olm.deprecations\npackage: " + pkg + "\nentries:\n- reference: {schema: olm.channel, name: " +
		channel + "}\n  message: old\n"
}

func TestOnlyWhatChangedIsParsed(t *testing.T) {
	k := knownIn(t, t.TempDir())
	fsys := fstest.MapFS{
		"foo/catalog.yaml": file(valid("foo")),
		"bar/catalog.yaml": file(valid("bar")),
		"flat.yaml":        file(large(valid("flat"))),
		"two.yaml":         file(large(valid("one") + valid("two"))),
		"one/more.yaml":    file("schema: custom\npackage: one\n"),
		".indexignore":     file("ignored\n"),
		"ignored":          file("this is no catalog"),
	}
	all := []string{"bar/catalog.yaml", "flat.yaml", "foo/catalog.yaml", "one/more.yaml", "two.yaml"}
	cold, _ := read(t, fsys, nil)
	if cold.err != "" || len(cold.files) != 5 {
		t.Fatalf("%+v", cold)
	}
	for _, step := range []struct {
		name   string
		change func()
		parsed []string
	}{
		{"first", func() {}, all},
		{"again", func() {}, nil},
		{"a comment in one", func() { fsys["foo/catalog.yaml"] = file("# x\n---\n" + valid("foo")) },
			[]string{"foo/catalog.yaml"}},
		{"another name", func() { fsys["foo/index.yaml"] = fsys["foo/catalog.yaml"]; delete(fsys, "foo/catalog.yaml") },
			nil},
		{"a further file of a package", func() { fsys["bar/more.yaml"] = file("schema: custom\npackage: bar\n") },
			[]string{"bar/catalog.yaml", "bar/more.yaml"}},
		{"it is gone again", func() { delete(fsys, "bar/more.yaml") }, nil},
		{"a package that is in a file with another",
			func() { fsys["one/more.yaml"] = file("schema: custom.other\npackage: one\n") },
			[]string{"one/more.yaml", "two.yaml"}},
		{"a package less", func() { delete(fsys, "flat.yaml") }, nil},
	} {
		step.change()
		want, _ := read(t, fsys, nil)
		got, parsed := read(t, fsys, k)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", step.name, got, want)
		}
		if !slices.Equal(parsed, step.parsed) {
			t.Errorf("%s: parsed %q, want %q", step.name, parsed, step.parsed)
		}
	}
	files, err := ReadCatalog(t.Context(), fsys, ReadOptions{Cache: k, Program: "another"})
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		e, err := layers.File("x", fsys, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		es := []layers.Entry{e}
		if err := layers.HashEntries(t.Context(), es); err != nil || es[0].Digest != f.Digest {
			t.Errorf("%s: digest %s, want %s", f.Path, f.Digest, es[0].Digest)
		}
	}
	if _, parsed := read(t, fsys, knownIn(t, t.TempDir())); len(parsed) != 4 {
		t.Errorf("another cache knows already: parsed %q", parsed)
	}
}

// For any change of a catalog, valid or not, reading it with a cache that has seen all other versions gives the same
// result as without one.
func TestWarmAndColdReadAlike(t *testing.T) {
	k := knownIn(t, t.TempDir())
	rng := rand.New(rand.NewPCG(7, 8))
	names := []string{"a", "b", "c", "d", "e"}
	fsys := fstest.MapFS{}
	texts := []func(p, q string) string{
		func(p, _ string) string { return valid(p) },
		func(p, _ string) string { return large(valid(p)) },
		func(p, q string) string { return valid(p) + valid(q) },
		func(p, _ string) string {
			return strings.Replace(valid(p), "defaultChannel: stable", "defaultChannel: none", 1)
		},
		func(p, _ string) string {
			return strings.Replace(valid(p), "name: stable", "name: stable\nname: stable", 1)
		}, // a warning
		func(p, _ string) string { return strings.Replace(valid(p), "version: 1.0.0", "version: x", 1) },
		func(p, _ string) string {
			return "schema: custom\npackage: " + p + "\nn: " + fmt.Sprint(rng.IntN(3)) + "\n"
		},
		func(p, q string) string {
			return "schema: olm.channel\npackage: " + p + "\nname: more\nentries:\n- name: " + q + ".v1.0.0\n"
		},
		func(_, _ string) string { return "schema: custom\n" },
		func(p, q string) string { return mixed(valid(p), valid(q)) },
		// without its package
		func(p, _ string) string { _, rest, _ := strings.Cut(valid(p)[4:], "---\n"); return rest },
		func(p, _ string) string { first, _, _ := strings.Cut(valid(p)[4:], "---\n"); return first },
		func(p, q string) string {
			return deprecated(p, "stable") + "---\n" + deprecated(q, "stable")
		},
		func(p, _ string) string { return deprecated(p, "none") },
		func(p, _ string) string { return "schema: olm.channel\nname: more\n" }, // of no package
		func(_, _ string) string { return "" },
		func(_, _ string) string { return "a: [" },
		func(p, _ string) string { return valid(p) + "---\nschema: [\n" },
	}
	places := []string{"%s/catalog.yaml", "%s/more.yaml", "%s.yaml", "x/%s.json", "%s/sub/catalog.yaml", "z.yaml"}
	right, wrong, warned, fewer := 0, 0, 0, 0
	for i := range 300 {
		for range 1 + rng.IntN(2) {
			switch n := rng.IntN(10); {
			case n < 3 && len(fsys) > 0:
				delete(fsys, slices.Sorted(maps.Keys(fsys))[rng.IntN(len(fsys))])
			case n == 3 && rng.IntN(3) == 0:
				fsys[names[rng.IntN(len(names))]+"/.indexignore"] = file(
					[]string{"more.yaml\n", "sub\n", "*\n!catalog.yaml\n"}[rng.IntN(3)])
			case n == 3:
				fsys[".indexignore"] = file(
					"/" + strings.ReplaceAll(places[rng.IntN(len(places))], "%s", names[rng.IntN(len(names))]) + "\n")
			default:
				p := names[rng.IntN(len(names))]
				kind, place := rng.IntN(2), 0
				if rng.IntN(4) == 0 {
					kind, place = rng.IntN(len(texts)), rng.IntN(len(places))
				}
				fsys[strings.ReplaceAll(places[place], "%s", p)] = file(texts[kind](p, names[rng.IntN(len(names))]))
			}
		}
		if len(fsys) > 6 || i%10 == 0 {
			fsys = fstest.MapFS{"a/catalog.yaml": file(valid("a")), "b/catalog.yaml": file(valid("b"))}
		}
		if i%25 == 7 {
			fsys["a/catalog.yaml"] = file(
				strings.Replace(valid("a"), "defaultChannel: stable", "defaultChannel: stable\ndefaultChannel: stable",
					1))
		}
		want, _ := read(t, fsys, nil)
		pieces, again := readPieces(t, fsys)
		if !reflect.DeepEqual(pieces, want) || again != (want.err != "") {
			t.Fatalf("step %d, %q: in pieces (all again: %v)\n%+v\nand as a whole\n%+v", i,
				slices.Sorted(maps.Keys(fsys)), again, pieces, want)
		}
		got, parsed := read(t, fsys, k)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d, %q: with the cache\n%+v\nand without\n%+v", i, slices.Sorted(maps.Keys(fsys)), got, want)
		}
		switch {
		case want.err != "":
			wrong++
		case len(want.warnings) > 0:
			warned++
		default:
			right++
			if len(parsed) < len(want.files) {
				fewer++
			}
		}
	}
	if right < 30 || wrong < 20 || warned < 3 || fewer < 20 {
		t.Errorf("%d valid, %d wrong, %d with warnings, %d of them read in part: not what was to be tried", right,
			wrong, warned, fewer)
	}
}

// A file that changes while the catalog is read is an error, and nothing wrong is cached.
func TestFileThatChangesWhileItIsRead(t *testing.T) {
	k := knownIn(t, t.TempDir())
	fsys := fstest.MapFS{"a/catalog.yaml": file(valid("a"))}
	changing := &changingFS{MapFS: fsys, then: valid("b")}
	if _, err := ReadCatalog(t.Context(), changing, ReadOptions{Cache: k, Program: "test"}); !errors.Is(err,
		layers.ErrChanged) {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{valid("a"), valid("b")} {
		fsys := fstest.MapFS{"a/catalog.yaml": file(text)}
		want, _ := read(t, fsys, nil)
		if got, _ := read(t, fsys, k); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// changingFS has another file from the second opening on.
type changingFS struct {
	fstest.MapFS
	then   string
	opened int
}

func (c *changingFS) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, ".yaml") {
		if c.opened++; c.opened > 1 {
			return fstest.MapFS{name: file(c.then)}.Open(name)
		}
	}
	return c.MapFS.Open(name)
}

// A large catalog is not held in memory completely, whether its packages have separate files or are spread over files,
// and no file is read more than twice.
func TestPiecesOfACatalog(t *testing.T) {
	deprecations := ""
	own, over, one := fstest.MapFS{}, fstest.MapFS{}, ""
	for i := range 40 {
		name := fmt.Sprintf("p%02d", i)
		text := valid(name)
		first, rest, _ := strings.Cut(text[4:], "---\n")
		own[name+"/catalog.yaml"] = file(text)
		over["a/"+name+".yaml"], over["b/"+name+".yaml"] = file(first), file(rest)
		deprecations += deprecated(name, "stable")
		one += text
	}
	beside := fstest.MapFS{"deprecations.yaml": file(deprecations)}
	maps.Copy(beside, own)
	for _, tt := range []struct {
		name   string
		fsys   fstest.MapFS
		opened int // maximum for one file
	}{
		{"a file each", own, 1},
		{"one file", fstest.MapFS{"catalog.yaml": file(one)}, 1},
		{"two files each", over, 2},
		{"deprecations of all in one file", beside, 3},
		{"one file and deprecations", fstest.MapFS{"catalog.yaml": file(one), "deprecations.yaml": file(deprecations)},
			2},
	} {
		want, _ := read(t, tt.fsys, nil)
		counted := &countingFS{FS: tt.fsys, opened: map[string]int{}}
		files, err := readInPieces(t.Context(), counted, ReadOptions{Jobs: 2}, 0)
		if want.err != "" || err != nil || len(files) != len(want.files) {
			t.Errorf("%s: %d files, %v; want %d, %s", tt.name, len(files), err, len(want.files), want.err)
		}
		for name, n := range counted.opened {
			if n > tt.opened {
				t.Errorf("%s: %s opened %d times", tt.name, name, n)
			}
		}
	}
}

func TestPartsOfASecondReading(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name          string
		own, together int64 // bytes of each package's separate file, and of one with blobs of all packages
		want          int
	}{
		{"little", 1 * mib, 0, 1},
		{"much", 32 * mib, 0, 5},
		{"much, and a little file of all", 32 * mib, mib, 5},
		{"much, and a large file of all", 32 * mib, 160 * mib, 3},
		{"all in one file", 0, 500 * mib, 1},
	} {
		r := &reading{files: []sourceFile{{size: tt.together}}}
		in := map[string][]int{}
		var names []string
		for i := range 10 {
			name := fmt.Sprint(i)
			names = append(names, name)
			r.files = append(r.files, sourceFile{size: tt.own})
			in[name] = []int{0, i + 1}
		}
		got := r.groupPackages(names, in)
		if all := slices.Concat(got...); len(got) != tt.want || !slices.Equal(all, names) {
			t.Errorf("%s: %q, want %d parts", tt.name, got, tt.want)
		}
	}
	if got := (&reading{}).groupPackages(nil, nil); len(got) > 0 {
		t.Errorf("of nothing: %q", got)
	}
}
