package bundle_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// TestDirectories tests properties that only real directories have.
func TestDirectories(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(outside, []byte("kind: Secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(t *testing.T, prepare func(dir string) error) (*bundle.Bundle, error) {
		t.Helper()
		dir := t.TempDir()
		if err := os.CopyFS(dir, sound(nil)); err != nil {
			t.Fatal(err)
		}
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		fsys, err := declcfg.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
	}
	refused := map[string]struct {
		prepare func(dir string) error
		want    string
	}{
		"a link out of the bundle": {func(dir string) error {
			return os.Symlink(outside, filepath.Join(dir, "manifests/x.yaml"))
		}, "manifests/x.yaml: a link that leads to nothing within the bundle"},
		"a dangling link": {func(dir string) error {
			return os.Symlink("nowhere", filepath.Join(dir, "metadata/x.yaml"))
		}, "metadata/x.yaml: a link"},
		"a FIFO": {func(dir string) error {
			return syscall.Mkfifo(filepath.Join(dir, "manifests/x.yaml"), 0o600)
		}, "manifests/x.yaml: not a regular file"},
		"a file called manifests": {func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "manifests")),
				os.WriteFile(filepath.Join(dir, "manifests"), nil, 0o600))
		}, "manifests: "},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, test.prepare)
			if !errors.Is(err, bundle.ErrInvalid) || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(err.Error(), "Secret") {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	t.Run("a mounted ConfigMap", func(t *testing.T) {
		b, err := open(t, func(dir string) error {
			manifests := filepath.Join(dir, "manifests")
			return errors.Join(os.Mkdir(filepath.Join(manifests, "..1"), 0o700),
				os.Symlink("..1", filepath.Join(manifests, "..data")),
				os.Rename(filepath.Join(manifests, "service.yaml"), filepath.Join(manifests, "..1/service.yaml")),
				os.Symlink("..data/service.yaml", filepath.Join(manifests, "service.yaml")))
		})
		if err != nil || len(b.Objects) != 2 || len(b.Problems)+len(b.StrictProblems()) > 0 {
			t.Errorf("error %v, bundle %+v", err, b)
		}
	})
	t.Run("a file that may not be read is no fault of the bundle", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may read any file")
		}
		_, err := open(t, func(dir string) error { return os.Chmod(filepath.Join(dir, "manifests/csv.yaml"), 0) })
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, bundle.ErrInvalid) {
			t.Errorf("error %v", err)
		}
	})
}
