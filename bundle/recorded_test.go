package bundle_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/sqlite"
)

// The recorded bundles are read once per process.
var (
	readBundles sync.Once
	allRead     map[string]fstest.MapFS
	readErr     error
)

// recordedBundles returns the recorded bundle directories by "PACKAGE-vVERSION".
func recordedBundles(root string) (map[string]fstest.MapFS, error) {
	packed, err := os.Open(filepath.Join(root, "bundles-all-dev-packages.tar.zst"))
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	plain, err := zstd.NewReader(packed)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	bundles := map[string]fstest.MapFS{}
	add := func(name string, data []byte) {
		parts := strings.SplitN(name, "/", 3)
		if len(parts) < 3 {
			return
		}
		key := parts[0] + "-v" + parts[1]
		if bundles[key] == nil {
			bundles[key] = fstest.MapFS{}
		}
		bundles[key][parts[2]] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	for tr := tar.NewReader(plain); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		add(path.Clean(h.Name), data)
	}
	synth := os.DirFS(filepath.Join(root, "bundles", "synth"))
	err = fs.WalkDir(synth, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(synth, name)
		add(strings.ReplaceAll(name, "+", "-"), data)
		return err
	})
	// Some directories next to the bundles are inputs for generating catalogs.
	maps.DeleteFunc(bundles, func(_ string, files fstest.MapFS) bool {
		_, err := fs.Stat(files, "manifests")
		return err != nil
	})
	return bundles, err
}

func allBundles(t testing.TB) map[string]fstest.MapFS {
	t.Helper()
	readBundles.Do(func() { allRead, readErr = recordedBundles(string(recorded.All(t))) })
	if readErr != nil {
		t.Fatal(readErr)
	}
	return allRead
}

// rendered returns opm's output for a blob.
func rendered(t testing.TB, blob *declcfg.Bundle, f declcfg.Format) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := f.NewEncoder(&out).Encode(blob); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(t testing.TB, fsys fs.FS, o bundle.ReadOptions) *bundle.Bundle {
	t.Helper()
	b, err := bundle.Read(context.Background(), fsys, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func blob(t testing.TB, b *bundle.Bundle, image string) *declcfg.Bundle {
	t.Helper()
	made, err := b.Blob(image)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Errorf("%s: line %d is %.300q, opm has %.300q", what, i+1, g[i], w[i])
			return
		}
	}
	t.Errorf("%s: %d lines, opm has %d", what, len(g), len(w))
}

// part is the part of the collection in testdata.
const part = "../testdata"

func TestBundlesAreRenderedAsByOpm(t *testing.T) {
	for _, name := range []string{"etcd/0.9.4", "silicom-sts-operator/0.0.1", "pelorus-operator/0.0.9",
		"synth-constraint/0.1.0", "synth-constraint/0.2.0"} {
		t.Run(name, func(t *testing.T) {
			fsys, err := declcfg.OpenDir(filepath.Join(part, "bundles", name))
			if err != nil {
				t.Fatal(err)
			}
			b := read(t, fsys, bundle.ReadOptions{})
			if len(b.Problems)+len(b.StrictProblems()) > 0 {
				t.Errorf("a sound bundle has the problems %v %v", b.Problems, b.StrictProblems())
			}
			compareDirectory(t, recorded.Collection(part), strings.Replace(name, "/", "-v", 1), b)
			compareImage(t, recorded.Collection(part), strings.Replace(name, "/", "-v", 1),
				func(string) *bundle.Bundle { return b })
		})
	}
}

// compareDirectory compares a bundle directory with opm's answers for it.
func compareDirectory(t *testing.T, answers recorded.Collection, name string, b *bundle.Bundle) {
	t.Helper()
	dir := "golden-bundles/" + name + "/"
	image := "example.test/" + b.Package + "/" + b.CSV.Name + ":v" + b.CSV.Version
	same(t, "render-dir-notmpl.json", rendered(t, blob(t, b, ""), declcfg.FormatJSON),
		answers.File(t, dir+"render-dir-notmpl.json"))
	same(t, "render-dir.json", rendered(t, blob(t, b, image), declcfg.FormatJSON),
		answers.File(t, dir+"render-dir.json"))
}

// compareImage compares the bundle in an image with opm's answers for it.
func compareImage(t *testing.T, answers recorded.Collection, name string, open func(image string) *bundle.Bundle) {
	t.Helper()
	dir := "golden-bundles/" + name + "/"
	var want struct{ Image string }
	if err := json.Unmarshal(answers.File(t, dir+"render-image.json"), &want); err != nil {
		t.Fatal(err)
	}
	made := blob(t, open(want.Image), want.Image)
	same(t, "render-image.json", rendered(t, made, declcfg.FormatJSON), answers.File(t, dir+"render-image.json"))
	same(t, "render-image.yaml", rendered(t, made, declcfg.FormatYAML), answers.File(t, dir+"render-image.yaml"))
}

// recordedNames returns the bundles for which the collection has all answers.
func recordedNames(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(string(recorded.All(t)), "golden-bundles"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) < 29 {
		t.Errorf("the collection has answers to %d bundles only", len(names))
	}
	return names
}

func TestRecordedBundlesAreRenderedAsByOpm(t *testing.T) {
	bundles := allBundles(t)
	for _, name := range recordedNames(t) {
		t.Run(name, func(t *testing.T) {
			compareDirectory(t, recorded.All(t), name, read(t, bundles[name], bundle.ReadOptions{}))
		})
	}
}

// recordedImage reads a bundle from an image of the recorded registry.
func recordedImage(t *testing.T, conf, ref string) *bundle.Bundle {
	t.Helper()
	yes := true
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read,
		Options: registries.Options{Temp: t.TempDir(), Registry: registries.Config{
			RegistriesConf: conf, SkipTLSVerify: &yes, PlainHTTP: true,
		}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	img, err := client.Image(t.Context(), ref, v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	labels := img.Config.Config.Labels
	tree, err := img.Extract(t.Context(), bundle.Paths(labels), images.ExtractOptions{Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	return read(t, tree, bundle.ReadOptions{Labels: labels})
}

func TestRecordedImagesAreRenderedAsByOpm(t *testing.T) {
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	for _, name := range recordedNames(t) {
		t.Run(name, func(t *testing.T) {
			compareImage(t, recorded.All(t), name,
				func(image string) *bundle.Bundle { return recordedImage(t, conf, image) })
		})
	}
}

// TestRecordedDatabasesHoldTheSameBundles compares the blobs of bundles with what opm rendered from databases and
// templates that it made from their images. The order of properties there is that of database rows.
func TestRecordedDatabasesHoldTheSameBundles(t *testing.T) {
	answers := recorded.All(t)
	ours := map[string]*bundle.Bundle{}
	for key, files := range allBundles(t) {
		b, err := bundle.Read(t.Context(), files, bundle.ReadOptions{})
		if strings.HasPrefix(key, "etcd-overwrite") {
			continue // has the name of another bundle
		}
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		ours[b.CSV.Name] = b
	}
	compared, withObjects := map[string]bool{}, false
	for _, file := range []string{
		"golden/medium/render.json", "golden/small/render.json", "golden/small-digest/render.json",
		"golden/incremental/render.json",
		"golden/incremental-semver/render.json", "golden/deprec-base/render.json", "golden/subs/render.json",
		"golden/nodefault/render.json",
		"golden/constraint/render.json", "golden-templates/semver-kairos/typed.json",
		"golden-templates/semver-default/typed.json",
	} {
		catalog, err := declcfg.Load(t.Context(), fstest.MapFS{"catalog": &fstest.MapFile{Data: answers.File(t, file)}},
			declcfg.LoadOptions{})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range catalog.Bundles {
			want := &catalog.Bundles[i]
			if ours[want.Name] == nil {
				t.Errorf("%s: nothing to compare the bundle %q with", file, want.Name)
				continue
			}
			got := blob(t, ours[want.Name], want.Image)
			compared[want.Name] = true
			withObjects = withObjects || want.HasObjects
			if g, w := propertySet(got, want.HasObjects), propertySet(want, true); !slices.Equal(g, w) {
				t.Errorf("%s: %s: properties\n%.1000q\nopm has\n%.1000q", file, want.Name, g, w)
			}
			if !slices.Equal(got.RelatedImages, want.RelatedImages) {
				t.Errorf("%s: %s: related images\n%v\nopm has\n%v", file, want.Name, got.RelatedImages,
					want.RelatedImages)
			}
		}
	}
	if len(compared) < 120 || !withObjects {
		t.Errorf("only %d bundles were compared", len(compared))
	}
	t.Logf("%d bundles of %d were compared", len(compared), len(ours))
}

// propertySet returns the properties without constraints, which opm loses in databases. In some modes opm keeps only
// the manifests of channel heads.
func propertySet(b *declcfg.Bundle, objects bool) []string {
	var out []string
	for _, p := range b.Properties {
		if p.Type != declcfg.PropertyConstraint && (objects || p.Type != declcfg.PropertyBundleObject) {
			out = append(out, sqlite.PropertyText(p.Type, p.Value))
		}
	}
	slices.Sort(out)
	return out
}
