package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/filelock"
)

// workingDir is the name of oc-mirror's directory for what it leaves (MIRROR section 3).
const workingDir = "working-dir"

// lockDir is locked while a run uses the workspace. It is not the workspace itself: every atomic write locks the
// directory that it writes to.
const lockDir = ".lock"

// Workspace is the directory of what runs leave for each other and for clusters. One run at a time uses it.
type Workspace struct {
	dir  string
	lock *filelock.Dir
}

// ErrBusy is the class of errors about a workspace that another run uses.
var ErrBusy = fault.New(fault.Local, "another run uses the workspace")

// OpenWorkspace opens the workspace in a directory and makes it if there is none: DIR/working-dir, or DIR itself if
// that is its name. Close it after use.
func OpenWorkspace(dir string) (*Workspace, error) {
	dir = filepath.Clean(dir)
	if filepath.Base(dir) != workingDir {
		if inside := insideWorkspace(dir); inside != "" {
			return nil, fmt.Errorf("%w: %q is inside the workspace %q", fault.ErrInvalid, dir, inside)
		}
		dir = filepath.Join(dir, workingDir)
	}
	if err := os.MkdirAll(filepath.Join(dir, lockDir), 0o755); err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	// On file systems without locks LockDir succeeds, and TryDir does not.
	short, cancel := context.WithTimeout(context.Background(), 2*filelock.Poll)
	defer cancel()
	lock, err := filelock.LockDir(short, filepath.Join(dir, lockDir))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w: %s", ErrBusy, dir)
	}
	if err != nil {
		return nil, err
	}
	return &Workspace{dir, lock}, nil
}

// insideWorkspace returns the workspace that a directory is in: one of this program, or of oc-mirror.
func insideWorkspace(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for at := filepath.Dir(full); at != filepath.Dir(at); at = filepath.Dir(at) {
		if filepath.Base(at) != workingDir {
			continue
		}
		for _, has := range []string{lockDir, "cluster-resources", "operator-catalogs"} {
			if _, err := os.Stat(filepath.Join(at, has)); err == nil {
				return at
			}
		}
	}
	return ""
}

// Close ends the use of the workspace.
func (w *Workspace) Close() error {
	if w != nil && w.lock != nil {
		w.lock.Unlock()
	}
	return nil
}

// Dir is the directory.
func (w *Workspace) Dir() string { return w.dir }

// Resources is the directory of the files for clusters.
func (w *Workspace) Resources() string { return filepath.Join(w.dir, "cluster-resources") }

func (w *Workspace) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

// Write writes a file of the workspace, with its directory, and returns its path.
func (w *Workspace) Write(content []byte, parts ...string) (string, error) {
	path := w.path(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, atomicfs.WriteFile(path, content, 0o644)
}

// read reads a file of at most 256 MiB; nil if there is none.
func (w *Workspace) read(parts ...string) ([]byte, error) {
	f, err := os.Open(w.path(parts...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, 256<<20)
}

// stamp is the time in the names of logs.
func stamp(t time.Time) string { return t.Format("20060102_150405") }

// pinnedTime is the time in the names of pinned configurations.
func pinnedTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// fileTime is the time in a name on file systems without colons.
func fileTime(t time.Time) string {
	text := pinnedTime(t)
	if os.PathSeparator == '\\' {
		text = strings.ReplaceAll(text, ":", "-")
	}
	return text
}
