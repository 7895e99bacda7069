package clitest

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// RunOpm runs the program as opm with the recorded registry under its recorded name.
func RunOpm(t *testing.T, conf, dir string, args ...string) Result {
	t.Helper()
	cmd := Command(dir, "opm", args...)
	cmd.Env = append(cmd.Env, "CONTAINERS_REGISTRIES_CONF="+conf, "XDG_CACHE_HOME="+t.TempDir())
	return Finish(t, cmd)
}

// TreeOf lists every file of a tree with its content.
func TreeOf(t *testing.T, fsys fs.FS) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		fmt.Fprintf(&b, "%s\n%s\n", name, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
