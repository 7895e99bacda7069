package mirror_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/mirror/stock"
)

// large is a catalog whose images are large beside their manifests.
var large = mirrortest.Shape{Packages: 4, Bundles: 4, Images: 3, SharedLayers: 2, LayerBytes: 100_000, IndexEvery: 5,
	SignedEvery: 3, TagEvery: 7}

// upgrade adds the next version of the catalog to the source, and asks for it under the same tag at the target.
func (w *world) upgrade(s mirrortest.Shape) {
	s.Version = "v2"
	w.source = mirrortest.AddSynthetic(w.T, w.source.Registry, s)
	w.set = strings.Replace(w.set, "catalog:v1\n", "catalog:v2\n    targetTag: v1\n", 1)
}

// takeAway removes the archive that was carried over: a further one would follow it.
func (w *world) takeAway() {
	w.Helper()
	names, err := filepath.Glob(filepath.Join(w.dir, "medium", "mirror_*.tar"))
	w.fatal(err)
	for _, name := range names {
		w.fatal(os.Remove(name))
	}
}

// inventory takes stock of the target.
func (w *world) inventory() *stock.Inventory {
	w.Helper()
	skip := true
	remote, err := registries.New(w.Context(), registries.Options{Registry: registries.Config{SkipTLSVerify: &skip,
		PlainHTTP: true}, Temp: w.TempDir()})
	w.fatal(err)
	defer remote.Close()
	var names []string
	for _, name := range w.target.Repositories() {
		names = append(names, strings.TrimPrefix(name, "to/"))
	}
	var text bytes.Buffer
	_, err = stock.Take(w.Context(), func(name string) (store.Reader, error) { return remote.Repository(name) },
		&text, stock.TakeOptions{Registry: w.target.Host(), Path: "to", Repositories: names})
	w.fatal(err)
	i, err := stock.Read(&text)
	w.fatal(err)
	return i
}

// The medium of a changed catalog carries what is new: a quarter of the images here. It does so by an inventory of the
// target as well as by what earlier media had, and the target ends as one that all was mirrored to. A medium that is
// lost costs one more run.
func TestDelta(t *testing.T) {
	for _, by := range []string{"history", "inventory"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t, large)
			w.must(mirror.ToDisk)
			whole := w.mediumBytes()
			w.must(mirror.FromDisk)
			w.takeAway()
			w.upgrade(large)
			against := func(o *mirror.Options) {
				if by == "inventory" {
					o.Against, o.AgainstDigest = w.inventory(), "sha256:1"
				}
			}
			w.must(mirror.ToDisk, against)
			if n := w.mediumBytes(); n > whole*2/5 {
				t.Errorf("the second medium has %d of %d bytes", n, whole)
			}
			w.source.Forget()
			w.must(mirror.FromDisk)
			w.servable()
			if n := len(w.source.Requests()); n > 0 {
				t.Errorf("the source was asked %d times", n)
			}
			got := tags(w.target)
			w.dir = t.TempDir()
			first := *w
			first.set = strings.Replace(w.set, "catalog:v2\n    targetTag: v1\n", "catalog:v1\n", 1)
			first.newTarget()
			first.must(mirror.ToMirror)
			w.target, w.host = first.target, first.host
			w.must(mirror.ToMirror)
			w.same(got)
		})
	}
}

// A medium that never arrives is made again: by an inventory, or with all. What the target lacks is reported before,
// and not published.
func TestLostMedium(t *testing.T) {
	w := newWorld(t, large)
	w.must(mirror.ToDisk)
	w.fatal(os.RemoveAll(filepath.Join(w.dir, "medium")))
	w.upgrade(large)
	w.must(mirror.ToDisk)
	a, err := w.run(mirror.FromDisk)
	if err == nil {
		t.Error("no error for a medium that counts on what never came")
	}
	w.servable()
	if a != nil && len(a.Catalogs) > 0 && a.Catalogs[0].Published {
		for _, b := range servedBundles(t, w.target, "to/synthetic/catalog", "v1") {
			if !strings.HasSuffix(b.Name, ".v1.3.0") {
				t.Errorf("%s is served", b.Name)
			}
		}
	}
	w.must(mirror.ToDisk, func(o *mirror.Options) { o.Against, o.AgainstDigest = w.inventory(), "sha256:1" })
	w.must(mirror.FromDisk)
	w.servable()
	if n := len(servedBundles(t, w.target, "to/synthetic/catalog", "v1")); n != 16 {
		t.Errorf("%d bundles are served", n)
	}
}

// What a medium leaves out and another repository of the target has is mounted there, or read there if the registry
// does not mount.
func TestDeltaAcrossRepositories(t *testing.T) {
	for _, mounts := range []bool{true, false} {
		w := newWorld(t, mirrortest.Shape{Packages: 1, Bundles: 2, Images: 2, SharedLayers: 1, LayerBytes: 200_000})
		w.target.Separate(mounts)
		w.must(mirror.ToDisk)
		w.must(mirror.FromDisk)
		w.takeAway()
		// Another package, whose images have the layer that all share.
		w.source = mirrortest.AddSynthetic(t, w.source.Registry, mirrortest.Shape{Packages: 2, Bundles: 2, Images: 2,
			SharedLayers: 1, LayerBytes: 200_000})
		w.set = allPackages(2)
		w.must(mirror.ToDisk)
		if n := w.mediumBytes(); n > 11*100_000 { // five layers that are new, and not the shared one
			t.Errorf("the second medium has %d bytes", n)
		}
		w.target.SetRules(testregistry.Rules{Children: true})
		w.target.Forget()
		w.must(mirror.FromDisk)
		for _, q := range w.target.Requests() {
			if mounts && strings.HasPrefix(q, "GET /v2/to/synthetic/op") && strings.Contains(q, "/blobs/sha256") {
				t.Errorf("read and not mounted: %s", q)
			}
		}
		w.servable()
	}
}

// A dry run to disk counts what the archive would have: nothing of what earlier ones carried. It says how much space
// the disk has.
func TestDryRunOfADelta(t *testing.T) {
	w := newWorld(t, small)
	dry := func(o *mirror.Options) { o.DryRun = true }
	sum := func(a *mirror.Account) (n int64) {
		for _, r := range a.Repositories {
			n += r.Bytes
		}
		return n
	}
	first := w.must(mirror.ToDisk, dry)
	carried := w.must(mirror.ToDisk)
	if n := sum(first); n == 0 || n > carried.Archives[0].Bytes || first.Free <= 0 {
		t.Errorf("%d bytes, %d free, for an archive of %d", n, first.Free, carried.Archives[0].Bytes)
	}
	if n := sum(w.must(mirror.ToDisk, dry)); n != 0 {
		t.Errorf("%d bytes again", n)
	}
	if n := sum(w.must(mirror.ToDisk, dry, func(o *mirror.Options) { o.All = true })); n != sum(first) {
		t.Errorf("%d bytes of all, %d at first", n, sum(first))
	}
}

// Whatever layer of a catalog is damaged in an archive, nothing of the archive is copied, and it is not in order.
func TestADamagedCatalogInAnArchive(t *testing.T) {
	w := newWorld(t, small)
	w.must(mirror.ToDisk)
	dir := filepath.Join(w.dir, "medium")
	reader, err := medium.Open(t.Context(), dir)
	w.fatal(err)
	catalog := reader.Contents().Catalogs[0]
	repository := reader.Repository(catalog.Path)
	top, err := repository.Head(t.Context(), catalog.Tag)
	w.fatal(err)
	image, err := store.ReadImage(t.Context(), repository, top)
	w.fatal(err)
	var layers []v1.Descriptor
	for _, of := range image.Instances {
		text, _, err := repository.Manifest(t.Context(), of.Digest.String())
		w.fatal(err)
		parts, err := store.PartsOf(text)
		w.fatal(err)
		layers = append(layers, parts.Layers...)
	}
	w.fatal(reader.Close())
	if layers = store.Once(layers); len(layers) < 4 {
		t.Fatal(layers)
	}
	for _, layer := range layers {
		flip := flipper(t, dir, layer)
		flip()
		_, err := w.run(mirror.FromDisk)
		if !errors.Is(err, images.ErrIntegrity) || !strings.Contains(err.Error(), layer.Digest.String()) {
			t.Errorf("%s: %v", layer.Digest, err)
		}
		if there := tags(w.target); len(there) > 0 {
			t.Fatalf("%s: copied before the damage was found: %v", layer.Digest, there)
		}
		flip()
	}
	w.must(mirror.FromDisk)
}

// flipper returns what changes a byte of a blob in the first segment of an archive, and changes it back.
func flipper(t *testing.T, dir string, blob v1.Descriptor) func() {
	t.Helper()
	name := filepath.Join(dir, "mirror_000001.tar")
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries := tar.NewReader(f)
	for {
		h, err := entries.Next()
		if err != nil {
			t.Fatalf("%s: %v", blob.Digest, err)
		}
		if path.Base(h.Name) == blob.Digest.Encoded() {
			break
		}
	}
	at, err := f.Seek(blob.Size/2, io.SeekCurrent)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		text, err := os.ReadFile(name)
		if err == nil {
			text[at] ^= 0xff
			err = os.WriteFile(name, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
