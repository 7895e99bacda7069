//go:build !nobuildah

package containerfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// A catalog in an image has files and directories that everyone may read, and nothing else.
func TestContainerfileRefusesWhatCatalogsMayNotHave(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		make  func(t *testing.T, dir string)
		want  string
	}{
		"fine": {"COPY cat /configs", nil, ""},
		"a link": {"COPY cat /configs", link("foo/catalog.json", "link.json"),
			"/configs/link.json is a symbolic link"},
		"a link outside": {"COPY cat /configs\nCOPY other /data", link("x", "../other/link"), ""},
		"a dangling link": {"COPY cat /configs", link("nothing", "foo/link.json"),
			"/configs/foo/link.json is a symbolic link"},
		"another directory": {"COPY cat /fbc\nLABEL operators.operatorframework.io.index.configs.v1=fbc/",
			link("foo", "dir"),
			"/fbc/dir is a symbolic link"},
		"a mode": {"COPY --chmod=600 cat /configs", nil, "has the mode 0600"},
		"a file's mode": {"COPY cat /configs", func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, "foo", "catalog.json"), 0o640); err != nil {
				t.Fatal(err)
			}
		}, "/configs/foo/catalog.json has the mode 0640"},
		"the directory is a link": {"COPY linked /", link("cat", "../linked/configs"), "/configs is a symbolic link"},
		"no such directory":       {"COPY cat /elsewhere", link("foo", "dir"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clitest.WriteFile(t, filepath.Join(dir, "cat", "foo", "catalog.json"), clitest.PackageText("foo"))
			clitest.WriteFile(t, filepath.Join(dir, "other", "file"), "x")
			clitest.WriteFile(t, filepath.Join(dir, "linked", "cat", "catalog.json"), clitest.PackageText("foo"))
			if c.make != nil {
				c.make(t, filepath.Join(dir, "cat"))
			}
			clitest.WriteFile(t, filepath.Join(dir, "Containerfile"),
				"FROM scratch\nLABEL operators.operatorframework.io.index.configs.v1=/configs\n"+c.lines+"\n")
			got := clitest.RunProgram(t, dir, "bindery", "build", "containerfile", ".", "-t", "catalog:v1", "--no-cache")
			if c.want == "" && got.Status != 0 ||
				c.want != "" && (got.Status != 1 || !strings.Contains(got.Stderr, c.want)) {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}

func link(target, name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
