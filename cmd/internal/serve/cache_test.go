package serve_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// readLayout unpacks the only image of a layout with the files' modes and returns its root and configuration.
func readLayout(t *testing.T, layout string) (string, v1.Image) {
	t.Helper()
	blob := func(d v1.Descriptor) string { return filepath.Join(layout, "blobs", "sha256", d.Digest.Encoded()) }
	var index v1.Index
	decode(t, filepath.Join(layout, "index.json"), &index)
	var manifest v1.Manifest
	decode(t, blob(index.Manifests[0]), &manifest)
	var config v1.Image
	decode(t, blob(manifest.Config), &config)
	root := t.TempDir()
	for _, l := range manifest.Layers {
		unpackLayer(t, blob(l), root)
	}
	return root, config
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(clitest.ReadFile(t, file)), into); err != nil {
		t.Fatal(err)
	}
}

func unpackLayer(t *testing.T, blob, root string) {
	t.Helper()
	f, err := os.Open(blob)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(root, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(name, 0o755)
		case tar.TypeReg:
			var text []byte
			if text, err = io.ReadAll(tr); err == nil {
				err = os.WriteFile(name, text, 0o600)
			}
		default:
			t.Fatalf("%s is of type %c", h.Name, h.Typeflag)
		}
		if err := errors.Join(err, os.Chmod(name, h.FileInfo().Mode())); err != nil {
			t.Fatal(err)
		}
	}
}

// checkOPMCache checks the cache in an unpacked image as opm does.
func checkOPMCache(t *testing.T, root string) opmcache.Report {
	t.Helper()
	r, err := opmcache.Check(t.Context(), os.DirFS(filepath.Join(root, "configs")),
		os.DirFS(filepath.Join(root, "tmp/cache")))
	if err != nil || !r.Valid() {
		t.Errorf("opm would refuse the cache: %+v, %v", r, err)
	}
	return r
}

func TestImagesWithOPMCaches(t *testing.T) {
	dir := clitest.EditDir(t)
	mini, err := filepath.Abs("../../../testdata/fbc/mini")
	if err != nil {
		t.Fatal(err)
	}
	const recorded = "6639a1c7bae1a487" // by opm, of its cache of mini
	for name, c := range map[string]struct {
		args   string
		format string
		digest string
		native bool
	}{
		"json":       {"build catalog " + mini + " --cache opm-json", "opm-json", "", false},
		"json-few":   {"build catalog " + mini + " --cache opm-json --max-layers 3", "opm-json", "", false},
		"pogreb":     {"build catalog " + mini + " --cache opm-pogreb", "opm-pogreb", recorded, false},
		"both kinds": {"build catalog " + mini + " --cache opm-pogreb,native", "opm-pogreb", recorded, true},
		"edited":     {"index rm -f catalog -o etcd --cache opm-json", "opm-json", "", false},
		"migrated":   {"migrate index.db --cache native --cache opm-pogreb", "opm-pogreb", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			layout := filepath.Join(t.TempDir(), "out")
			args := append(strings.Fields(c.args), "--server", "none", "-t", "acme/catalog:v1", "--output",
				"oci:"+layout+":v1")
			clitest.Done(t, dir, "bindery", args...)
			root, config := readLayout(t, layout)
			if r := checkOPMCache(t, root); r.Format != c.format || c.digest != "" && r.Digest != c.digest {
				t.Errorf("%+v", r)
			}
			if want := []string{"serve", "/configs", "--cache-dir=/tmp/cache"}; !slices.Equal(config.Config.Cmd, want) {
				t.Errorf("command %q", config.Config.Cmd)
			}
			if info, err := os.Stat(filepath.Join(root, "tmp")); err != nil ||
				info.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
				t.Errorf("/tmp: %v, %v", info.Mode(), err)
			}
			if _, err := os.Stat(filepath.Join(root, "cache")); (err == nil) != c.native {
				t.Errorf("native cache: %v", err)
			}
		})
	}
}

func TestCacheFlag(t *testing.T) {
	dir := clitest.EditDir(t)
	for _, c := range []struct{ args, part string }{
		{"--cache pogreb", "expected (native|opm-json|opm-pogreb|none)"},
		{"--cache none --cache native", "cannot be combined with other"},
		{"--cache opm-json,opm-pogreb", "same directory"},
	} {
		for _, command := range []string{"build catalog catalog", "index rm -f catalog -o etcd", "migrate catalog"} {
			args := append(strings.Fields(command),
				strings.Fields(c.args+" -t acme/catalog:v1 --output oci:"+filepath.Join(t.TempDir(), "out"))...)
			if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status == 0 || !strings.Contains(got.Stderr, c.part) {
				t.Errorf("%s %s: %+v", command, c.args, got)
			}
		}
	}
	// The program's own server cannot use opm's cache, which is reported before any work.
	got := clitest.RunProgram(t, dir, "bindery",
		strings.Fields("build catalog not-there -t acme/catalog:v1 --dry-run --cache opm-json")...)
	if got.Status == 0 || !strings.Contains(got.Stderr, "add --cache native") {
		t.Errorf("%d, %s", got.Status, got.Stderr)
	}
}
