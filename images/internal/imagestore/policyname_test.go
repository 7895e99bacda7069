//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/fault"
)

// The names of an image in policies have the directory of its store.
func TestPolicyNames(t *testing.T) {
	dir := t.TempDir()
	small.WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	p, c := newPlace(t), newClient(t)
	if _, err := load(t, imagetest.Opened(t, c, "oci:"+dir+"/layout:v1"), nil, p.name("localhost/acme/cat:v1")); err != nil {
		t.Fatal(err)
	}
	place := "vfs@" + p.root + "+" + p.run
	identity, above := imagestore.PolicyNames(imagestore.Name{Place: place, Image: "localhost/acme/cat:v1"})
	if want := "[vfs@" + p.root + "]localhost/acme/cat:v1"; identity != want {
		t.Errorf("it is %q, want %q", identity, want)
	}
	if !slices.Contains(above, "[vfs@"+p.root+"]localhost/acme") {
		t.Errorf("it is in %q", above)
	}
}

// A store that cannot be opened is an error, also where only its name in policies is asked for, and so is an image that
// it cannot have.
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
	if identity, above := imagestore.PolicyNames(imagestore.Name{Place: "vfs@" + file + "/root+" + file + "/run",
		Image: "x"}); identity != "" || len(above) > 0 {
		t.Errorf("in policies it is %q, in %q", identity, above)
	}
	if src, err := imagestore.OpenSource(t.Context(), imagestore.Name{Place: "vfs@" + file + "/root+" + file + "/run",
		Image: "x"}, t.TempDir()); !errors.Is(err, imagestore.ErrStore) {
		t.Errorf("opened: %v, %v", src, err)
	}
	if out, err := imagestore.NewOutput(t.Context(), imagestore.Name{Place: "vfs@" + file + "/root+" + file + "/run",
		Image: "x"}, []byte("{}")); !errors.Is(err, imagestore.ErrStore) {
		t.Errorf("written to: %v, %v", out, err)
	}
	p := newPlace(t)
	if out, err := imagestore.NewOutput(t.Context(), imagestore.Name{Place: "vfs@" + p.root + "+" + p.run, Image: "x"},
		[]byte("no configuration")); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("an image without a configuration: %v, %v", out, err)
	}
}
