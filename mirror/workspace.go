package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/filelock"
	"github.com/operator-bindery/bindery/mirror/internal/nolink"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// workingDir is the directory of a workspace in which oc-mirror keeps cluster resources, logs and unpacked catalogs.
const workingDir = "working-dir"

// lockDir is locked while a run uses the workspace. It is not the workspace itself: every atomic write locks the
// directory that it writes to.
const lockDir = ".lock"

// Workspace is the directory of what runs leave for each other and for clusters. One run at a time uses it. It may be
// on a medium that others have written: no link in it is followed, and only regular files are read.
type Workspace struct {
	dir  workdir.Dir
	lock *filelock.Dir
}

// The classes of errors on which callers decide.
var (
	// ErrBusy is about a workspace that another run uses.
	ErrBusy = fault.New(fault.Local, "another run uses the workspace")
	// ErrNoRecord is about a workspace from which nothing was mirrored to a target.
	ErrNoRecord = workdir.ErrNoRecord
	// ErrNoCatalog is about a target of which neither a catalog nor an image is known that could be verified.
	ErrNoCatalog = fault.New(fault.Usage, "no catalog to verify")
)

// OpenWorkspace opens the workspace in a directory and makes it if there is none: DIR/working-dir, or DIR itself if
// that is its name. It must be one that can be written. Close it after use.
func OpenWorkspace(dir string) (*Workspace, error) {
	w, err := workspaceIn(dir)
	if err != nil {
		return nil, err
	}
	lock, err := nolink.MakeDir(w.Dir(), lockDir)
	if err == nil {
		err = atomicfs.CheckFile(filepath.Join(w.Dir(), workdir.CarriedFile))
	}
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return w, w.acquire(lock)
}

// ReadWorkspace opens a workspace for reading, as [OpenWorkspace] does. It makes nothing, so that the workspace may be
// on a medium that cannot be written.
func ReadWorkspace(dir string) (*Workspace, error) {
	w, err := workspaceIn(dir)
	if err != nil {
		return nil, err
	}
	lock, err := w.dir.Path(lockDir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	if info, err := os.Lstat(lock); err != nil || !info.IsDir() {
		return w, nil // no run has used it
	}
	return w, w.acquire(lock)
}

// workspaceIn is the workspace in a directory, without its lock.
func workspaceIn(dir string) (*Workspace, error) {
	dir = filepath.Clean(dir)
	if filepath.Base(dir) != workingDir {
		if inside := insideWorkspace(dir); inside != "" {
			return nil, fmt.Errorf("%w: %q is inside the workspace %q", fault.ErrInvalid, dir, inside)
		}
		dir = filepath.Join(dir, workingDir)
	}
	if _, err := nolink.Below(filepath.Dir(dir), workingDir, lockDir); err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return &Workspace{dir: workdir.Dir(dir)}, nil
}

// acquire locks the workspace by a directory.
func (w *Workspace) acquire(dir string) (err error) {
	// On file systems without locks LockDir succeeds, and TryDir does not.
	short, cancel := context.WithTimeout(context.Background(), 2*filelock.Poll)
	defer cancel()
	w.lock, err = filelock.LockDir(short, dir)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %s", ErrBusy, w.Dir())
	}
	return err
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

// Dir is the directory, for messages: what is below it is reached by the other methods.
func (w *Workspace) Dir() string { return string(w.dir) }

// files gives access to the files of the workspace; there are none if it is nil.
func (w *Workspace) files() workdir.Dir {
	if w == nil {
		return ""
	}
	return w.dir
}

// Resources is the directory of the files for clusters.
func (w *Workspace) Resources() (string, error) { return w.dir.Path("cluster-resources") }

// Uploads opens the store of the uploads that runs have not ended.
func (w *Workspace) Uploads() (*registries.UploadStore, error) {
	dir, err := w.dir.Path(".uploads")
	if err != nil {
		return nil, err
	}
	return registries.NewUploadStore(dir)
}

// Write writes a file of the workspace, with its directory, and returns its path.
func (w *Workspace) Write(content []byte, parts ...string) (string, error) {
	return w.dir.Write(content, parts...)
}

// Create makes a file of the workspace that is written as it grows, in place of the one that is there.
func (w *Workspace) Create(parts ...string) (*os.File, error) { return w.dir.Create(parts...) }

// logTime is the time in the names of logs.
func logTime(t time.Time) string { return t.Format("20060102_150405") }

// pinnedTime is the time in the names of pinned configurations.
func pinnedTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// fileTime returns a time as a part of the name of a file. Windows does not allow the colons.
func fileTime(t time.Time) string {
	text := pinnedTime(t)
	if os.PathSeparator == '\\' {
		text = strings.ReplaceAll(text, ":", "-")
	}
	return text
}
