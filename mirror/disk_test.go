package mirror

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
)

// An archive that needs more than the disk has is a warning with both sizes.
func TestCheckSpace(t *testing.T) {
	report, dir := newReport(&Options{}), t.TempDir()
	if free := checkSpace(report, dir, 0); free <= 0 || len(report.account.Problems) > 0 {
		t.Errorf("%d, %v", free, report.account.Problems)
	}
	checkSpace(report, dir, 1<<62)
	if p := report.account.Problems; len(p) != 1 || !strings.Contains(p[0].Message, "needs 4611686018427387904 bytes") {
		t.Errorf("%v", p)
	}
}

// A workspace is used by one run at a time, and is not made inside of another one.
func TestWorkspace(t *testing.T) {
	dir := t.TempDir()
	none, err := ReadWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(none.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading has made it: %v", err)
	}
	w, err := OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(string) (*Workspace, error){OpenWorkspace, ReadWorkspace} {
		if _, err := open(filepath.Join(dir, "working-dir")); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := OpenWorkspace(filepath.Join(w.Dir(), "logs")); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	path, err := w.Write([]byte("x"), "logs", "a")
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Create("logs", "b")
	if err != nil || filepath.Dir(f.Name()) != filepath.Dir(path) {
		t.Fatal(err)
	}
	uploads, err := w.Uploads()
	if err = errors.Join(err, f.Close(), w.Close()); err != nil || uploads == nil {
		t.Error(err)
	}
	if w, err = ReadWorkspace(dir); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
