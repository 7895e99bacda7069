package build

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
)

// elsewhere writes an image of each architecture to a directory, as another builder does.
func elsewhere(t *testing.T, f Format) (dirs []string, imgs []*Image) {
	t.Helper()
	for arch, m := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		img := catalog(t, CatalogInput{FS: sampleFS()}, Options{Format: f, Servers: []Server{server(t, arch, m)}})
		dir := filepath.Join(t.TempDir(), arch)
		push(t, img, "dir:"+dir)
		dirs, imgs = append(dirs, dir), append(imgs, img)
	}
	return dirs, imgs
}

// A prebuilt image is copied unchanged, several as an index; shared layers are copied once.
func TestDirectories(t *testing.T) {
	for _, f := range []Format{FormatOCI, FormatDocker} {
		dirs, imgs := elsewhere(t, f)
		for i := range dirs {
			img, err := Directories(t.Context(), dirs[i:i+1], Options{Format: f})
			if err != nil {
				t.Fatal(err)
			}
			if img.Digest != imgs[i].Digest || img.Platforms[0].Config != imgs[i].Platforms[0].Config ||
				img.Totals.Size != imgs[i].Totals.Size || img.MediaType != imageType(f) {
				t.Errorf("%s: %s for %v instead of %s for %v", f, img.Digest, img.Platforms, imgs[i].Digest,
					imgs[i].Platforms)
			}
			out := filepath.Join(t.TempDir(), "out")
			push(t, img, "dir:"+out)
			want, err := os.ReadFile(filepath.Join(dirs[i], "manifest.json"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(out, "manifest.json")); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: another manifest was written: %v", f, err)
			}
		}
		all, err := Directories(t.Context(), dirs, Options{Format: f})
		if err != nil {
			t.Fatal(err)
		}
		if all.MediaType != indexType(f) || len(all.Platforms) != 2 || len(all.Layers) != len(imgs[0].Layers)+1 {
			t.Errorf("%s: %s of %v with %d layers", f, all.MediaType, all.Platforms, len(all.Layers))
		}
		if r := push(t, all, "dir:"+filepath.Join(t.TempDir(), "index")); r[0].Digest != all.Digest {
			t.Errorf("%s: %s was written, %s announced", f, r[0].Digest, all.Digest)
		}
	}
}

// A blob that does not match its digest is not copied.
func TestDamagedDirectories(t *testing.T) {
	for _, c := range []struct {
		what, want string
		format     Format
		damage     func(t *testing.T, dir string, img *Image)
	}{
		{"another format", "the manifest is", FormatDocker, func(*testing.T, string, *Image) {}},
		{"no manifest", "manifest.json", FormatOCI,
			func(t *testing.T, dir string, _ *Image) { remove(t, filepath.Join(dir, "manifest.json")) }},
		{"another configuration", "digest mismatch", FormatOCI, func(t *testing.T, dir string, img *Image) {
			overwrite(t, filepath.Join(dir, img.Platforms[0].Config.Encoded()), []byte("{}"))
		}},
		{"a long manifest", "longer than", FormatOCI, func(t *testing.T, dir string, _ *Image) {
			overwrite(t, filepath.Join(dir, "manifest.json"), bytes.Repeat([]byte(" "), maxManifest+1))
		}},
	} {
		dirs, imgs := elsewhere(t, FormatOCI)
		c.damage(t, dirs[0], imgs[0])
		if _, err := Directories(t.Context(), dirs, Options{Format: c.format}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	dirs, imgs := elsewhere(t, FormatOCI)
	overwrite(t, filepath.Join(dirs[0], imgs[0].Layers[0].Digest.Encoded()), []byte("something else"))
	img, err := Directories(t.Context(), dirs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	d, err := transports.Parse("dir:" + out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Copy(t.Context(), img.Store(), img.Top(), []transport.Destination{d},
		images.CopyOptions{Options: registries.Options{Temp: t.TempDir()}, Transports: transports}); err == nil {
		t.Error("a layer with another content was passed on")
	}
	if _, err := os.Lstat(out); err == nil {
		t.Error("something was written")
	}
}

func overwrite(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
