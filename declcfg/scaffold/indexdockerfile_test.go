package scaffold_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg/scaffold"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

func TestDatabaseDockerfile(t *testing.T) {
	answers := recorded.All(t)
	for file, image := range map[string]string{"index-add.Dockerfile": "example.test/opm:1",
		"index-add-from.Dockerfile": scaffold.DefaultImage} {
		got, err := scaffold.DatabaseDockerfile(image, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := string(answers.File(t, "golden-misc/"+file)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
	got, err := scaffold.DatabaseDockerfile("x", map[string]string{"b": `say "$2"`, "a": "1"})
	if err != nil || !strings.Contains(got, "index.db\nLABEL \"a\"=\"1\"\nLABEL \"b\"=\"say \\\"\\$2\\\"\"\nADD ") {
		t.Errorf("labels: %s, %v", got, err)
	}
	if got, err := scaffold.DatabaseDockerfile("x", map[string]string{"a": "1\nRUN x"}); err == nil {
		t.Errorf("a label of two lines: %s", got)
	}
	for _, image := range []string{"", "a b", "a\nRUN x"} {
		if got, err := scaffold.DatabaseDockerfile(image, nil); err == nil {
			t.Errorf("%q: %s", image, got)
		}
	}
}

// Only a file that is a Dockerfile of an index is replaced.
func TestReplaceDockerfile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "index.Dockerfile")
	for _, image := range []string{"a", "b"} {
		text, err := scaffold.DatabaseDockerfile(image, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := scaffold.ReplaceDockerfile(path, text); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	const mine = "FROM scratch\nCOPY a b\n"
	if err := os.WriteFile(path, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := scaffold.ReplaceDockerfile(path, "x"); !errors.Is(err, scaffold.ErrNotGenerated) {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != mine {
		t.Errorf("somebody's Dockerfile is now %q", got)
	}
	if err := scaffold.ReplaceDockerfile(dir, "x"); !errors.Is(err, scaffold.ErrNotGenerated) {
		t.Errorf("a directory: %v", err)
	}
	if err := scaffold.CheckDockerfile(filepath.Join(dir, "nosuch", "x")); err == nil {
		t.Error("a file in a directory that is not there can be written")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}
