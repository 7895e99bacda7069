package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/version"
)

// breaking is a stream with a bug.
type breaking struct{}

func (breaking) Write([]byte) (int, error) { panic("a bug") }

// A bug in a command is an error with what is to be reported: no trace of Go, no arguments, nothing left behind.
func TestBugReport(t *testing.T) {
	dir := clitest.WorkDir(t)
	t.Chdir(dir)
	before := names(t, dir)
	for _, c := range []struct {
		line string
		want []string
	}{
		{"render cat", []string{"error: internal error: a bug\n", "hint: this is a bug: please report it with the lines below at https://",
			version.Get().String(), "command: bindery render\n", "\nat cmd/internal/"}},
		{"render cat --error-format json", []string{`{"class":9,"message":"internal error: a bug\n` + version.Get().String()[:8]}},
	} {
		var stderr bytes.Buffer
		status := app.Run(append([]string{"bindery"}, strings.Fields(c.line)...), strings.NewReader(""), breaking{}, &stderr)
		for _, want := range c.want {
			if status != 1 || !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: status %d, it does not say %q:\n%s", c.line, status, want, &stderr)
			}
		}
		for _, not := range []string{"goroutine", "runtime.", "bindery render cat"} {
			if strings.Contains(stderr.String(), not) {
				t.Errorf("%s: it says %q:\n%s", c.line, not, &stderr)
			}
		}
	}
	if after := names(t, dir); after != before {
		t.Errorf("there is left:\n%s\nbefore there was:\n%s", after, before)
	}
}

// names returns the names of all files below a directory.
func names(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}
