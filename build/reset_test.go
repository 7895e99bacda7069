package build

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/olmv1/catalogdtest"
)

// TestCatalogOfTheBaseIsHidden builds on images that have a catalog: neither container engines nor catalogd, which
// filters entries by path before it applies whiteouts, show any of it. The test includes packages that are in both
// under different file names.
func TestCatalogOfTheBaseIsHidden(t *testing.T) {
	files := map[string]string{
		"configs/foo/catalog.json": "old", "configs/old/catalog.yaml": "old", "configs/.indexignore": "old",
		"cache/old.cache":  "old",
		"tmp/cache/digest": "old", "elsewhere/fbc/old.yaml": "old", "configs/sub/old.yaml": "old", "keep": "kept",
		"tmp/keep": "kept",
	}
	for _, label := range []string{"/configs", "configs/", "/configs/sub", "/elsewhere/fbc", "/configs..v2",
		"/keep/../configs..v2"} {
		for _, format := range []Format{FormatOCI, FormatDocker} {
			t.Run(strings.ReplaceAll(label, "/", "_")+" "+string(format), func(t *testing.T) {
				below := baseImage{config: v1.ImageConfig{Labels: map[string]string{ConfigsLabel: label}}, files: files,
					platforms: []v1.Platform{amd64}}
				ref, err := NamedBase(imagetest.Client(t), layoutOf(t, below))
				if err != nil {
					t.Fatal(err)
				}
				img, err := Catalog(t.Context(), CatalogInput{FS: packageFS("foo", "new")},
					Options{Base: ref, Format: format, Dir: t.TempDir()})
				if strings.Contains(label, "/../") {
					if err == nil || !strings.Contains(err.Error(), "has the invalid path") {
						t.Fatalf("got %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer img.Close()
				dest := map[Format]string{FormatOCI: "oci:", FormatDocker: "dir:"}[format] + filepath.Join(t.TempDir(),
					"out")
				push(t, img, dest)
				opened, tr := tree(t, dest, v1.Platform{}, ".")
				got := catalogdtest.Files(t, opened)
				shown := names(t, tr)
				for name, text := range got {
					if text == "old" && strings.HasPrefix(label, "/configs/") || text == "old" && strings.Trim(label,
						"/") == "configs" {
						t.Errorf("catalogd shows %s", name)
					}
				}
				for _, name := range shown {
					if below := strings.Trim(label, "/") + "/"; strings.HasPrefix(name, below) && files[name] == "old" {
						t.Errorf("%s is in the image", name)
					}
				}
				if !slices.Contains(shown, "keep") || !slices.Contains(shown, "tmp/keep") || slices.Contains(shown,
					"cache/old.cache") || slices.Contains(shown, "tmp/cache/digest") {
					t.Errorf("the image has %q", shown)
				}
				for _, pkg := range []string{"foo", "new"} {
					if !slices.ContainsFunc(slices.Collect(maps.Keys(got)),
						func(name string) bool { return strings.HasPrefix(name, "configs/"+pkg+"/") }) {
						t.Errorf("package %s is missing: %q", pkg, slices.Sorted(maps.Keys(got)))
					}
				}
			})
		}
	}
}

// TestOtherProgramsHideTheCatalogOfTheBase unpacks such an image with umoci and with podman's store.
func TestOtherProgramsHideTheCatalogOfTheBase(t *testing.T) {
	old := map[string]string{"configs/foo/catalog.json": "old", "configs/old/catalog.yaml": "old",
		"cache/old.cache": "old", "tmp/cache/old": "old", "keep": "x"}
	below := baseImage{config: v1.ImageConfig{Labels: map[string]string{ConfigsLabel: "/configs"}}, files: old,
		platforms: []v1.Platform{amd64}}
	ref, err := NamedBase(imagetest.Client(t), layoutOf(t, below))
	if err != nil {
		t.Fatal(err)
	}
	img := catalog(t, CatalogInput{FS: packageFS("foo", "new")}, Options{Base: ref})
	layout := filepath.Join(t.TempDir(), "out")
	push(t, img, "oci:"+layout+":v1")
	_, tr := tree(t, "oci:"+layout+":v1", v1.Platform{}, ".")
	want := names(t, tr)
	check := func(t *testing.T, root string) {
		var got []string
		out, err := exec.Command("find", root, "-type", "f", "-printf", "%P\n").Output()
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.Lines(string(out)) {
			got = append(got, strings.TrimSpace(name))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, and our reader has %q", got, want)
		}
	}
	t.Run("umoci", func(t *testing.T) {
		if _, err := exec.LookPath("umoci"); err != nil {
			t.Skip("umoci is not installed")
		}
		bundle := filepath.Join(t.TempDir(), "bundle")
		client(t, "umoci", "unpack", "--rootless", "--image", layout+":v1", bundle)
		check(t, filepath.Join(bundle, "rootfs"))
	})
	for _, driver := range []string{"vfs", "overlay"} {
		t.Run("podman "+driver, func(t *testing.T) {
			if _, err := exec.LookPath("podman"); err != nil {
				t.Skip("podman is not installed")
			}
			dir, err := os.MkdirTemp("", "pod") // podman accepts short names only
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				exec.Command("podman", "unshare", "rm", "-rf", dir).Run()
				os.RemoveAll(dir)
			})
			podman := []string{"--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"),
				"--storage-driver", driver}
			run := func(args ...string) (string, error) {
				out, err := exec.Command("podman", append(slices.Clone(podman), args...)...).CombinedOutput()
				return strings.TrimSpace(string(out)), err
			}
			push(t, img, "oci:"+filepath.Join(dir, "image")+":v1")
			if out, err := run("pull", "-q", "oci:"+filepath.Join(dir, "image")+":v1"); err != nil {
				t.Skipf("podman cannot store images here with %s: %s", driver, out)
			}
			id, err := run("images", "-q")
			if err != nil {
				t.Fatal(id)
			}
			root, err := run("image", "mount", id)
			if err != nil {
				t.Skipf("podman cannot mount images here with %s: %s", driver, root)
			}
			check(t, root)
			if out, err := run("image", "umount", id); err != nil {
				t.Error(out)
			}
		})
	}
}
