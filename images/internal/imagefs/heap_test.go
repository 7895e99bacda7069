package imagefs

import (
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/limit"
)

// What of an image does not fit into memory has no name while it is used: nothing of it stays if the program is killed.
func TestExtractedFilesAreNotToBeSeen(t *testing.T) {
	temp := t.TempDir()
	text := strings.Repeat("catalog\n", 20_000)
	s := stack(nil, plainLayer(tarOf(t, entry{name: "configs/a/catalog.yaml", body: text})))
	tree, err := s.Extract(t.Context(), []string{"configs"}, limit.Limits{Memory: 1}, temp)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("there is %v (%v)", left, err)
	}
	if got, err := fs.ReadFile(tree, "configs/a/catalog.yaml"); err != nil || string(got) != text {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
