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
}
