package clitest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// Submission writes a repository of operators to a directory: a work tree of git, with the branch origin/main and one
// bundle more, which is staged.
func Submission(t testing.TB, dir string) {
	t.Helper()
	for name, text := range recorded.Archive(t, "../../../testdata/pipelines/git.tar.zst") {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ".git", "refs"), 0o777); err != nil { // git has it, and an archive of files does not
		t.Fatal(err)
	}
}
