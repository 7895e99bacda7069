//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
)

func TestListsOfAStoreAreRegularFiles(t *testing.T) {
	root := t.TempDir()
	list := filepath.Join(root, "vfs-images", "images.json")
	if err := os.Mkdir(filepath.Dir(list), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkFiles(root); err != nil {
		t.Error(err)
	}
	if err := syscall.Mkfifo(list, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkFiles(root); !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
	large := filepath.Join(t.TempDir(), "vfs-layers", "layers.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(large), 0o700), os.WriteFile(large, nil, 0o600),
		os.Truncate(large, maxStoreFile+1)); err != nil {
		t.Fatal(err)
	}
	if err := checkFiles(filepath.Dir(filepath.Dir(large))); !errors.Is(err, fault.ErrLimit) {
		t.Error(err)
	}
}

// A store that has been used with one old driver only is opened with that.
func TestPriorDriver(t *testing.T) {
	root := t.TempDir()
	if got := priorDriver(root); got != "" {
		t.Errorf("a new store: %q", got)
	}
	for _, step := range []struct{ made, want string }{{"vfs", "vfs"}, {"overlay", ""}} {
		if err := os.Mkdir(filepath.Join(root, step.made), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := priorDriver(root); got != step.want {
			t.Errorf("with %s: %q", step.made, got)
		}
	}
}
