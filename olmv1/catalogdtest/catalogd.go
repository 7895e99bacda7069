// Package catalogdtest unpacks images for tests as OLM v1 does, catalogd those of catalogs and operator-controller
// those of bundles, and stores catalogs as catalogd does. Its rules differ from those of container engines: entries
// outside the catalog's directory are dropped first, with the whiteouts among them, and then the others are applied as
// containerd applies layers. It answers recorded images as the real programs did, and shares no code with the readers
// of this project but the one that opens images and the one that lists the files of a catalog.
package catalogdtest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.podman.io/image/v5/pkg/compression"

	"github.com/operator-bindery/bindery/images"
)

const configsLabel = "operators.operatorframework.io.index.configs.v1"

// Unpacked is what is unpacked of an image.
type Unpacked struct {
	// Root is the directory with the files.
	Root string
	// special are paths that are devices, FIFOs or sockets in the image. Files stand for them, as tests may not make
	// them.
	special map[string]fs.FileMode
}

// Catalog unpacks the image of a catalog into a new directory in dir. The error is catalogd's.
func Catalog(ctx context.Context, img *images.Image, dir string) (*Unpacked, error) {
	label, ok := img.Config.Config.Labels[configsLabel]
	if !ok {
		return nil, fmt.Errorf("error applying image: catalog image is missing the required label %q", configsLabel)
	}
	return unpack(ctx, img, dir, onlyBelow(label))
}

// Bundle unpacks the image of a bundle into a new directory in dir. The error is operator-controller's.
func Bundle(ctx context.Context, img *images.Image, dir string) (*Unpacked, error) {
	return unpack(ctx, img, dir, func(string) (bool, error) { return true, nil })
}

func unpack(ctx context.Context, img *images.Image, dir string, filter func(string) (bool, error)) (*Unpacked, error) {
	u := &Unpacked{Root: filepath.Join(dir, img.Top.String()), special: map[string]fs.FileMode{}}
	if err := os.MkdirAll(u.Root, 0o700); err != nil {
		return nil, err
	}
	for n, layer := range img.Layers {
		err := func() error {
			packed, err := img.Blob(ctx, layer)
			if err != nil {
				return err
			}
			defer packed.Close() //nolint:errcheck // opened for reading only
			text, _, err := compression.AutoDecompress(packed)
			if err != nil {
				return err
			}
			defer text.Close() //nolint:errcheck // opened for reading only
			return u.apply(text, filter)
		}()
		if err != nil {
			return u, fmt.Errorf("error applying image: error applying layer[%d]: %w", n, err)
		}
	}
	return u, u.checkTypes()
}

// checkTypes refuses what is neither a file, nor a directory, nor a symbolic link.
func (u *Unpacked) checkTypes() error {
	return filepath.WalkDir(u.Root, func(name string, d fs.DirEntry, err error) error {
		if mode, ok := u.special[name]; ok && err == nil && d.Type().IsRegular() {
			return fmt.Errorf("error applying image: error making unpack directory read-only: refusing to change "+
				"ownership of file %q with type %v", name, mode)
		}
		return err
	})
}

// Files returns the files that catalogd unpacks from an image, with their content, by name relative to the image's
// root. Links and special files fail the test.
func Files(t testing.TB, img *images.Image) map[string]string {
	t.Helper()
	u, err := Catalog(t.Context(), img, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err = filepath.WalkDir(u.Root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s: neither a file nor a directory", name)
		}
		text, err := os.ReadFile(name)
		relative := strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(name, u.Root)), "/")
		files[relative] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Stored returns what catalogd stores of an image's catalog: one blob a line.
func Stored(t testing.TB, img *images.Image) string {
	t.Helper()
	u, err := Catalog(t.Context(), img, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := u.Store(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// Store writes the blobs of the unpacked catalog in the order of its files, each as a line of JSON with sorted keys.
// The error is catalogd's.
func (u *Unpacked) Store(w io.Writer) error { return store(w, os.DirFS(u.Root)) }

// Directory returns what catalogd stores of a catalog directory, in the form of [Stored].
func Directory(t testing.TB, dir string) string {
	t.Helper()
	var text strings.Builder
	if err := store(&text, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
