package build

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// counted returns options with a package cache that counts its calls.
func counted(k *Cache, made *atomic.Int64) Options {
	return Options{Cache: k, Jobs: 2, caches: cataloglayer.Caches{NativeID: "test 1",
		Native: func(p cataloglayer.Package) (cataloglayer.File, error) {
			made.Add(1)
			f := cataloglayer.File{Name: "_" + p.Name + ".cache",
				Content: fmt.Appendf(nil, "%d bundles", len(p.Catalog.Bundles))}
			if p.Name == "foo" {
				f.Notices = []string{"foo is large"}
			}
			return f, nil
		}}}
}

// build1 builds the image of a catalog and returns the warnings.
func build1(t testing.TB, fsys fs.FS, o Options) (*Image, []string) {
	t.Helper()
	var told []string
	o.Warn = func(text string) { told = append(told, text) }
	o.Dir = t.TempDir()
	img, err := Catalog(t.Context(), CatalogInput{FS: fsys}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	return img, told
}

// remembered counts the layers from an earlier build.
func remembered(img *Image) int {
	n := 0
	for _, l := range img.Layers {
		if l.Remembered {
			n++
		}
	}
	return n
}

// spools counts the layers and the other files in a directory.
func spools(t testing.TB, dir string) (layers, others int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if len(e.Name()) == 64 {
			layers++
		} else {
			others++
		}
	}
	return layers, others
}

func TestUnchangedLayersAreNotMade(t *testing.T) {
	for _, c := range []layers.Compression{layers.Gzip, layers.Zstd} {
		t.Run(string(c), func(t *testing.T) {
			var made atomic.Int64
			none := counted(nil, &made)
			none.Compression = c
			want, told := build1(t, sampleFS(), none)
			packages := made.Load()
			if packages == 0 || !slices.Equal(told, []string{"foo is large"}) {
				t.Fatalf("%d caches, told %q", packages, told)
			}
			dir := t.TempDir()
			for round, hits := range []int{0, len(want.Layers)} {
				made.Store(0)
				o := counted(knownIn(t, dir), &made)
				o.Compression = c
				img, told := build1(t, sampleFS(), o)
				if img.Digest != want.Digest || remembered(img) != hits || !slices.Equal(told,
					[]string{"foo is large"}) {
					t.Errorf("round %d: %s with %d layers from before, told %q; want %s with %d", round, img.Digest,
						remembered(img), told, want.Digest, hits)
				}
				if n := made.Load(); (n == 0) != (hits > 0) {
					t.Errorf("round %d: %d caches were made", round, n)
				}
				if len(img.Layers) != len(want.Layers) || img.Totals != want.Totals {
					t.Errorf("round %d: %+v, want %+v", round, img.Totals, want.Totals)
				}
			}
			fsys := sampleFS()
			fsys["foo/catalog.yaml"] = file(pkg("foo") + "# changed\n")
			made.Store(0)
			o := counted(knownIn(t, dir), &made)
			o.Compression = c
			img, _ := build1(t, fsys, o)
			cold, _ := build1(t, fsys, none)
			if img.Digest != cold.Digest || remembered(img) != len(img.Layers)-1 {
				t.Errorf("one package changed: %s with %d layers from before, want %s", img.Digest, remembered(img),
					cold.Digest)
			}
			o.caches.NativeID = "test 2"
			if img, _ := build1(t, fsys, o); remembered(img) != 0 {
				t.Errorf("another generation of the cache: %d layers from before", remembered(img))
			}
			o.caches.NativeID = ""
			for range 2 {
				if img, _ := build1(t, fsys, o); remembered(img) != 0 || img.Layers[0].Key != "" {
					t.Errorf("a cache without an ID: %d layers from before", remembered(img))
				}
			}
		})
	}
}

// The description of an image's layers is the same whether they were built or cached, and the keys are in its manifest.
func TestKeysAreInTheManifest(t *testing.T) {
	img, _ := build1(t, sampleFS(), Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64)}})
	seen := map[digest.Digest]bool{}
	for _, l := range img.Layers {
		if l.Key.Validate() != nil || seen[l.Key] || !strings.Contains(string(img.Manifest()),
			`"`+AnnotationKey+`":"`+l.Key.String()+`"`) {
			t.Errorf("%s %q: key %q", l.Kind, l.Packages, l.Key)
		}
		seen[l.Key] = true
	}
	// A server with a known digest gives the same key.
	program := program(t, elf.EM_X86_64, "server for amd64")
	known := server(t, "amd64", elf.EM_X86_64).withDigest(digest.FromBytes(program))
	if again, _ := build1(t, sampleFS(), Options{Servers: []Server{known}}); again.Digest != img.Digest {
		t.Errorf("%s, want %s", again.Digest, img.Digest)
	}
	wrong := server(t, "amd64", elf.EM_X86_64).withDigest(digest.FromString("another program"))
	if _, err := Catalog(t.Context(), CatalogInput{FS: sampleFS()},
		Options{Dir: t.TempDir(), Servers: []Server{wrong}}); !errors.Is(err, layers.ErrChanged) {
		t.Errorf("a server with another digest: %v", err)
	}
}

// The bytes of cached layers come from wherever they are: the destination, the cache, or the catalog.
func TestBytesOfKnownLayers(t *testing.T) {
	dir := t.TempDir()
	var made atomic.Int64
	want, _ := build1(t, sampleFS(), counted(knownIn(t, dir), &made))
	reg := testregistry.New(t)
	dest := "docker://" + reg.Host() + "/acme/catalog:v1"
	pushInsecure(t, want, dest)

	for name, lose := range map[string]func(){
		"all there":         func() {},
		"no blobs":          func() { remove(t, filepath.Join(dir, "blobs")) },
		"blobs are damaged": func() { damageAll(t, filepath.Join(dir, "blobs")) },
	} {
		lose()
		made.Store(0)
		img, _ := build1(t, sampleFS(), counted(knownIn(t, dir), &made))
		if remembered(img) != len(img.Layers) || !img.NeedsInput() {
			t.Fatalf("%s: %d layers from before", name, remembered(img))
		}
		temp := img.lazy[img.Layers[0].Digest].store
		tempDir := filepath.Dir(temp.Path(img.Layers[0].Digest))
		pushInsecure(t, img, dest)
		if written, _ := spools(t, tempDir); written != 0 || made.Load() != 0 {
			t.Errorf("%s: %d layers were written though the registry has them", name, written)
		}
		layout := filepath.Join(t.TempDir(), "layout")
		push(t, img, "oci:"+layout+":v1")
		written, _ := spools(t, tempDir)
		if again := made.Load() > 0; again != (name != "all there") || written != len(img.Layers) {
			t.Errorf("%s: %d of %d layers were written, made again: %v", name, written, len(img.Layers), again)
		}
		for _, l := range img.Layers {
			text, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", l.Digest.Encoded()))
			if err != nil || digest.FromBytes(text) != l.Digest {
				t.Errorf("%s: layer %s: %v", name, l.Digest, err)
			}
		}
		if err := img.Close(); err != nil {
			t.Error(err)
		}
		if _, others := spools(t, tempDir); others != 0 {
			t.Errorf("%s: %d files are left", name, others)
		}
	}
}

// withWrongNote returns the options of a cache whose note about the first layer of the sample has the digest of another
// layer, and the image without that note.
func withWrongNote(t *testing.T) (o Options, img *Image, other digest.Digest) {
	t.Helper()
	o = Options{Cache: knownIn(t, t.TempDir())}
	img, _ = build1(t, sampleFS(), o)
	l := img.Layers[0]
	other = digest.FromString("another layer")
	o.Cache.notes.Put(layerNote(l.Key),
		fmt.Appendf(nil, `{"digest":%q,"diffID":%q,"bytes":%d,"uncompressed":%d,"compression":"gzip"}`, other, l.DiffID,
			l.Size, l.Uncompressed))
	return o, img, other
}

// A wrong note is detected when the bytes are needed, and removed.
func TestWrongNotes(t *testing.T) {
	o, img, other := withWrongNote(t)
	k, l := o.Cache, img.Layers[0]
	lied, _ := build1(t, sampleFS(), o)
	_, err := images.Copy(t.Context(), lied.Store(), lied.Top(),
		[]transport.Destination{{Transport: transport.OCI, Path: filepath.Join(t.TempDir(), "out"), Name: "v1"}},
		images.CopyOptions{Options: registries.Options{Temp: t.TempDir()}, Transports: transports})
	var stale *staleError
	if !errors.As(err, &stale) || stale.Was != other || stale.Made != l.Digest {
		t.Errorf("got %v", err)
	}
	if again, _ := build1(t, sampleFS(), o); again.Digest != img.Digest {
		t.Errorf("after that: %s, want %s", again.Digest, img.Digest)
	}
	for _, text := range []string{"", "{}", "[]",
		`{"digest":"sha256:../x","diffID":"sha256:y","bytes":1,"uncompressed":1,"compression":"gzip"}`,
		fmt.Sprintf(`{"digest":%q,"diffID":%q,"bytes":-1,"uncompressed":1,"compression":"gzip"}`, other, other),
		fmt.Sprintf(`{"digest":%q,"diffID":%q,"bytes":1,"uncompressed":1,"compression":"zstd"}`, other, other)} {
		k.notes.Put(layerNote(l.Key), []byte(text))
		if again, _ := build1(t, sampleFS(), o); again.Digest != img.Digest || remembered(again) != len(img.Layers)-1 {
			t.Errorf("note %q: %s, %d layers from before", text, again.Digest, remembered(again))
		}
	}
}

// A previous image's claims about its content are trusted only if the caller allows it; its layers can always be
// mounted.
func TestLayersOfAPreviousImage(t *testing.T) {
	img, _ := build1(t, sampleFS(), Options{})
	p := &Previous{layers: map[digest.Digest]layers.Blob{}, repository: "registry.example.com/acme/catalog"}
	for _, l := range img.Layers {
		p.layers[l.Key] = layers.Blob{Digest: l.Digest, DiffID: l.DiffID, Size: l.Size}
	}
	for _, trusted := range []bool{false, true} {
		p.Trusted = trusted
		again, _ := build1(t, sampleFS(), Options{Cache: knownIn(t, t.TempDir()), Previous: p})
		if again.Digest != img.Digest || (remembered(again) > 0) != trusted {
			t.Errorf("trusted %v: %s, %d layers from before", trusted, again.Digest, remembered(again))
		}
		for _, l := range again.Layers {
			if got := again.Store().Can().Repositories(l.Digest); !slices.Equal(got, []string{p.repository}) {
				t.Errorf("layer %q can be lent by %q", l.Packages, got)
			}
		}
		push(t, again, "oci:"+filepath.Join(t.TempDir(), "layout"))
	}
}

// Two builds that share a cache do not disturb each other.
func TestBuildsAtOnce(t *testing.T) {
	dir := t.TempDir()
	var made atomic.Int64
	want, _ := build1(t, sampleFS(), counted(nil, &made))
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			img, _ := build1(t, sampleFS(), counted(knownIn(t, dir), &made))
			if img.Digest != want.Digest {
				t.Errorf("%s, want %s", img.Digest, want.Digest)
			}
			push(t, img, "oci:"+filepath.Join(t.TempDir(), "layout"))
		})
	}
	wg.Wait()
}

// Layers of a database or a bundle are found in the cache whatever file they came from.
func TestKnownIndexAndBundle(t *testing.T) {
	k := knownIn(t, t.TempDir())
	for round := range 2 {
		i, err := Index(t.Context(), database("a database"), Options{Dir: t.TempDir(), Cache: k})
		if err != nil {
			t.Fatal(err)
		}
		defer i.Close()
		b, err := Bundle(t.Context(), sampleBundle(sampleBundleFS()), Options{Dir: t.TempDir(), Cache: k})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if (remembered(i) == len(i.Layers)) != (round == 1) || (remembered(b) == len(b.Layers)) != (round == 1) {
			t.Errorf("round %d: %d and %d layers from before", round, remembered(i), remembered(b))
		}
		push(t, i, "oci:"+filepath.Join(t.TempDir(), "layout"))
	}
}

func pushInsecure(t testing.TB, img *Image, dest string) {
	t.Helper()
	d, err := images.BuiltIn().Parse(dest)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	if _, err := images.Copy(t.Context(), img.Store(), img.Top(), []transport.Destination{d},
		images.CopyOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &yes, PlainHTTP: true},
			Temp: t.TempDir()}}); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// damageAll changes a byte of every blob in a cache.
func damageAll(t testing.TB, dir string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(filepath.Join(dir, "sha256"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		n++
		_, err = io.WriteString(io.NewOffsetWriter(f, 5), "damage")
		return err
	})
	if err != nil || n == 0 {
		t.Fatalf("%d blobs, %v", n, err)
	}
}

// Caches of other servers are rebuilt only if their ID or their inputs change: that of a package with its layer, the
// one above all packages after any change.
func TestKnownExtraCaches(t *testing.T) {
	k := knownIn(t, t.TempDir())
	var packages, tops atomic.Int64
	o := Options{Cache: k, caches: cataloglayer.Caches{Extra: []cataloglayer.Extra{{
		ID: "extra 1", Dir: "tmp/cache",
		Package: func(c *declcfg.Catalog) ([]layers.Entry, error) {
			packages.Add(1)
			return []layers.Entry{layers.Bytes("tmp/cache/x_"+nameIn(c), 0o644, nil)}, nil
		},
		Whole: func(_ context.Context, _ string, whole []opmcache.Package) ([]layers.Entry, error) {
			tops.Add(1)
			return []layers.Entry{layers.Bytes("tmp/cache/digest", 0o644, fmt.Append(nil, len(whole)))}, nil
		},
	}}}}
	fsys := sampleFS()
	all := int64(0)
	for _, step := range []struct {
		name           string
		change         func()
		packages, tops func() int64
	}{
		{"first", func() {}, func() int64 { all = packages.Load(); return all }, func() int64 { return 1 }},
		{"again", func() {}, func() int64 { return 0 }, func() int64 { return 0 }},
		{"a package", func() { fsys["foo/catalog.yaml"] = file(pkg("foo") + "# x\n") }, func() int64 { return 1 },
			func() int64 { return 1 }},
		{"another ID", func() { o.caches.Extra[0].ID = "extra 2" }, func() int64 { return all },
			func() int64 { return 1 }},
	} {
		step.change()
		packages.Store(0)
		tops.Store(0)
		img, _ := build1(t, fsys, o)
		if p, n := packages.Load(), tops.Load(); p != step.packages() || n != step.tops() || all == 0 {
			t.Errorf("%s: %d caches of packages and %d above them were made", step.name, p, n)
		}
		cold := o
		cold.Cache = nil
		if want, _ := build1(t, fsys, cold); want.Digest != img.Digest {
			t.Errorf("%s: %s, want %s", step.name, img.Digest, want.Digest)
		}
	}
}

// An image whose layer differs from the cache record is rebuilt without the cache when it is copied.
func TestCopyRebuildsAStaleImage(t *testing.T) {
	o, img, _ := withWrongNote(t)
	stale, _ := build1(t, sampleFS(), o)
	if stale.Digest == img.Digest {
		t.Fatal("the note was not read")
	}
	warned := ""
	stale.warn = func(text string) { warned += text }
	results, err := stale.Copy(t.Context(),
		[]transport.Destination{{Transport: transport.OCI, Path: filepath.Join(t.TempDir(), "out"), Name: "v1"}},
		images.CopyOptions{Options: registries.Options{Temp: t.TempDir()}, Transports: transports})
	if err != nil || len(results) != 1 || stale.Digest != img.Digest || !strings.Contains(warned,
		"differs from the cache record") {
		t.Errorf("%v, %v, %s instead of %s, %q", results, err, stale.Digest, img.Digest, warned)
	}
	if err := stale.Close(); err != nil {
		t.Error(err)
	}
}

// Small files share a note with all files below the same directory of the catalog; large ones have separate notes.
func TestGroupFiles(t *testing.T) {
	files := []sourceFile{
		{name: "a.yaml"}, {name: "b.yaml"}, {name: "foo/catalog.yaml"}, {name: "foo/large.yaml", size: aloneSize},
	}
	for i := range 1000 {
		files = append(files, sourceFile{name: fmt.Sprintf("foo/bundles/%d/x.yaml", i)})
	}
	got := groupFiles(files)
	want := [][]int{{0, 1}, {2}, {3}}
	for i := range 1000 {
		want[1] = append(want[1], 4+i)
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%d groups: %.300v", len(got), got)
	}
}
