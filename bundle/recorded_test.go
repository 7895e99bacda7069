package bundle_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/recorded"
	"github.com/operator-bindery/bindery/internal/testregistry"
)

// recordedBundles are the bundle directories beside the project, by "PACKAGE-vVERSION".
var recordedBundles = sync.OnceValues(func() (map[string]fstest.MapFS, error) {
	root := filepath.Join("..", "..", "shared", "oracle")
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
	return bundles, fs.WalkDir(synth, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(synth, name)
		add(strings.ReplaceAll(name, "+", "-"), data)
		return err
	})
})

func allBundles(t testing.TB) map[string]fstest.MapFS {
	t.Helper()
	bundles, err := recordedBundles()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the collection of recorded bundles is not there: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bundles
}

// rendered is what opm prints for a blob.
func rendered(t testing.TB, blob *declcfg.Bundle, f declcfg.Format) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := declcfg.NewEncoder(&out, f).Encode(blob); err != nil {
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

func TestRecordedBundlesAreRenderedAsByOpm(t *testing.T) {
	answers := recorded.All(t)
	bundles := allBundles(t)
	entries, err := os.ReadDir(filepath.Join(string(answers), "golden-bundles"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			dir := "golden-bundles/" + e.Name() + "/"
			b := read(t, bundles[e.Name()], bundle.ReadOptions{})
			for _, p := range b.Problems {
				t.Logf("%s", p)
			}
			image := "example.test/" + b.Package + "/" + b.CSV.Name + ":v" + b.CSV.Version
			same(t, "render-dir-notmpl.json", rendered(t, blob(t, b, ""), declcfg.FormatJSON), answers.File(t, dir+"render-dir-notmpl.json"))
			same(t, "render-dir.json", rendered(t, blob(t, b, image), declcfg.FormatJSON), answers.File(t, dir+"render-dir.json"))
		})
	}
	if len(entries) < 29 {
		t.Errorf("only %d bundles were compared", len(entries))
	}
}

// recordedImage reads a bundle out of an image of the recorded registry.
func recordedImage(t *testing.T, conf, ref string) *bundle.Bundle {
	t.Helper()
	yes := true
	client, err := images.NewClient(images.ClientOptions{Temp: t.TempDir(), Registry: images.Registry{
		RegistriesConf: conf, SkipTLSVerify: &yes, PlainHTTP: true,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	img, err := client.Open(t.Context(), ref)
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
	answers := recorded.All(t)
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	entries, err := os.ReadDir(filepath.Join(string(answers), "golden-bundles"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			dir := "golden-bundles/" + e.Name() + "/"
			var want declcfg.Bundle
			if err := json.Unmarshal(answers.File(t, dir+"render-image.json"), &struct{ Image *string }{&want.Image}); err != nil {
				t.Fatal(err)
			}
			made := blob(t, recordedImage(t, conf, want.Image), want.Image)
			same(t, "render-image.json", rendered(t, made, declcfg.FormatJSON), answers.File(t, dir+"render-image.json"))
			same(t, "render-image.yaml", rendered(t, made, declcfg.FormatYAML), answers.File(t, dir+"render-image.yaml"))
		})
	}
}
