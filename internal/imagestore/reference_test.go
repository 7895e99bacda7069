//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/imagetest"
)

// A reference opens its store when it is used, for reading only.
func TestReference(t *testing.T) {
	dir := t.TempDir()
	want := small.WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	p, c := newPlace(t), newClient(t)
	if _, err := load(t, imagetest.Opened(t, c, "oci:"+dir+"/layout:v1"), nil, p.name("localhost/acme/cat:v1")); err != nil {
		t.Fatal(err)
	}
	place := "vfs@" + p.root + "+" + p.run
	ref, err := imagestore.NewReference(imagestore.Name{Place: place, Image: "localhost/acme/cat:v1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ref.StringWithinTransport(); got != "["+place+"]localhost/acme/cat:v1" ||
		ref.DockerReference().String() != "localhost/acme/cat:v1" {
		t.Errorf("%s, %s", got, ref.DockerReference())
	}
	if got := ref.PolicyConfigurationIdentity(); !strings.HasSuffix(got, "localhost/acme/cat:v1") {
		t.Errorf("in policies it is %q", got)
	}
	if got := ref.PolicyConfigurationNamespaces(); !slices.ContainsFunc(got, func(name string) bool {
		return strings.HasSuffix(name, "]localhost/acme")
	}) {
		t.Errorf("in policies it is in %q", got)
	}
	src, err := ref.NewImageSource(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := src.GetManifest(t.Context(), nil)
	if err = errors.Join(err, src.Close()); err != nil || digest.FromBytes(text) != want {
		t.Errorf("%s, %v", digest.FromBytes(text), err)
	}
	img, err := ref.NewImage(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if config, err := img.ConfigBlob(t.Context()); err != nil || !strings.Contains(string(config), `"a":"b"`) {
		t.Errorf("%s, %v", config, err)
	}
	if err := img.Close(); err != nil {
		t.Error(err)
	}
	if to, err := ref.NewImageDestination(t.Context(), nil); err == nil {
		t.Errorf("written to %v", to)
	}
	if err := ref.DeleteImage(t.Context(), nil); err == nil {
		t.Error("deleted")
	}
}

// A store that cannot be opened is an error, also where only its name in policies is asked for.
func TestStoresThatCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := imagestore.Open(t.Context(), "vfs@"+file+"/root+"+file+"/run"); !errors.Is(err, imagestore.ErrStore) {
		t.Errorf("in a file: %v, %v", s, err)
	}
	if s, err := imagestore.Open(t.Context(), "vfs@root"); err == nil {
		t.Errorf("no place: %v", s)
	}
	ref, err := imagestore.NewReference(imagestore.Name{Place: "vfs@" + file + "/root+" + file + "/run", Image: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ref.PolicyConfigurationIdentity(); got != "" {
		t.Errorf("in policies it is %q", got)
	}
	if src, err := ref.NewImageSource(t.Context(), nil); err == nil {
		t.Errorf("opened: %v", src)
	}
	if img, err := ref.NewImage(t.Context(), nil); err == nil {
		t.Errorf("opened: %v", img)
	}
	if src, err := imagestore.OpenSource(t.Context(), imagestore.Name{Place: "vfs@" + file + "/root+" + file + "/run",
		Image: "x"}, t.TempDir()); !errors.Is(err, imagestore.ErrStore) {
		t.Errorf("opened: %v, %v", src, err)
	}
	if ref, err := imagestore.NewReference(imagestore.Name{Place: "vfs@root", Image: "x"}); err == nil {
		t.Errorf("no place: %v", ref)
	}
	id := strings.Repeat("0a", 32)
	if ref, err = imagestore.NewReference(imagestore.Name{Image: id}); err != nil || ref.StringWithinTransport() != id ||
		ref.DockerReference() != nil {
		t.Errorf("an ID: %v, %v", ref, err)
	}
}
