package freespace

import (
	"path/filepath"
	"testing"
)

// A directory that does not exist has the space of the one above it.
func TestOf(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "a", "b")} {
		if free, err := Of(path); err != nil || free <= 0 {
			t.Errorf("%s: %d, %v", path, free, err)
		}
	}
}
