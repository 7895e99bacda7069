//go:build !nobuildah && unix

package containerfile

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
	if _, _, err := evaluate(t, "FROM scratch\nCOPY d /x", Options{Context: dir}); err == nil || !strings.Contains(err.Error(), `"d/fifo" is neither a file nor a directory; remove it`) {
		t.Error(err)
	}
}

// Opening a FIFO would wait for somebody who writes into it.
func TestIgnoreFilesAreRegularFiles(t *testing.T) {
	for _, name := range []string{".dockerignore", "F.containerignore"} {
		dir := contextDir(t, map[string]string{"a": "A"})
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := evaluator(t, "FROM scratch\nCOPY a /", Options{Context: dir, IgnoreBeside: filepath.Join(dir, "F")}); err == nil || !strings.Contains(err.Error(), name+": not a regular file") {
			t.Error(err)
		}
	}
}
