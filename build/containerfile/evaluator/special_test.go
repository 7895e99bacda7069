//go:build !nobuildah && unix

package evaluator

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSpecialFilesAreRefusedWhereTheyAreCopied(t *testing.T) {
	dir := contextDir(t, map[string]string{"a": "A", "d/b": "B"})
	if err := syscall.Mkfifo(filepath.Join(dir, "d", "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := evaluate(t, "FROM scratch\nCOPY a d/b /x/", Options{Context: dir}); err != nil {
		t.Error(err)
	}
	if _, _, err := evaluate(t, "FROM scratch\nCOPY d /x", Options{Context: dir}); err == nil ||
		!strings.Contains(err.Error(), `"d/fifo" is neither a file nor a directory; remove it`) {
		t.Error(err)
	}
}
