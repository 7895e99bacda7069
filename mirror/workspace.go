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

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/filelock"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// workingDir is the name of oc-mirror's directory for what it leaves (MIRROR section 3).
const workingDir = "working-dir"

// lockDir is locked while a run uses the workspace. It is not the workspace itself: every atomic write locks the
// directory that it writes to.
const lockDir = ".lock"

// Workspace is the directory of what runs leave for each other and for clusters. One run at a time uses it. It may be
// on a medium that others have written: no link in it is followed, and only regular files are read.
type Workspace struct {
	dir  string
	lock *filelock.Dir
}

// ErrBusy is the class of errors about a workspace that another run uses.
var ErrBusy = fault.New(fault.Local, "another run uses the workspace")

// OpenWorkspace opens the workspace in a directory and makes it if there is none: DIR/working-dir, or DIR itself if
// that is its name. It must be one that can be written. Close it after use.
func OpenWorkspace(dir string) (*Workspace, error) {
	w, err := workspaceIn(dir)
	if err != nil {
		return nil, err
	}
	lock, err := regularfile.MakeDir(w.dir, lockDir)
	if err == nil {
		err = atomicfs.CheckFile(filepath.Join(w.dir, carriedFile))
	}
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return w, w.take(lock)
}

// ReadWorkspace opens a workspace for reading, as [OpenWorkspace] does. It makes nothing, so that the workspace may be
// on a medium that cannot be written.
func ReadWorkspace(dir string) (*Workspace, error) {
	w, err := workspaceIn(dir)
	if err != nil {
		return nil, err
	}
	lock, err := w.path(lockDir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	if info, err := os.Lstat(lock); err != nil || !info.IsDir() {
		return w, nil // no run has used it
	}
	return w, w.take(lock)
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
	if _, err := regularfile.Below(filepath.Dir(dir), workingDir, lockDir); err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return &Workspace{dir: dir}, nil
}

// take locks the workspace by a directory.
func (w *Workspace) take(dir string) (err error) {
	// On file systems without locks LockDir succeeds, and TryDir does not.
	short, cancel := context.WithTimeout(context.Background(), 2*filelock.Poll)
	defer cancel()
	w.lock, err = filelock.LockDir(short, dir)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %s", ErrBusy, w.dir)
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
func (w *Workspace) Dir() string { return w.dir }

// Resources is the directory of the files for clusters.
func (w *Workspace) Resources() (string, error) { return w.path("cluster-resources") }

// path is that of a file or directory of the workspace.
func (w *Workspace) path(parts ...string) (string, error) { return regularfile.Below(w.dir, parts...) }

// Uploads opens the store of the uploads that runs have not ended.
func (w *Workspace) Uploads() (*registries.UploadStore, error) {
	dir, err := w.path(".uploads")
	if err != nil {
		return nil, err
	}
	return registries.NewUploadStore(dir)
}

// maxState is how many bytes a file of a workspace has at most: one that is larger is neither written nor read.
const maxState = 256 << 20

// Write writes a file of the workspace, with its directory, and returns its path.
func (w *Workspace) Write(content []byte, parts ...string) (string, error) {
	if len(content) > maxState {
		return "", fmt.Errorf("%s: %w: %d bytes (limit %d): mirror fewer images at once, in a workspace of their own",
			filepath.Join(append([]string{w.dir}, parts...)...), fault.ErrLimit, len(content), maxState)
	}
	dir, err := regularfile.MakeDir(w.dir, parts[:len(parts)-1]...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, parts[len(parts)-1])
	return path, atomicfs.WriteFile(path, content, 0o644)
}

// Create makes a file of the workspace that is written as it grows, in place of the one that is there.
func (w *Workspace) Create(parts ...string) (*os.File, error) {
	dir, err := regularfile.MakeDir(w.dir, parts[:len(parts)-1]...)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, parts[len(parts)-1])
	if err := atomicfs.CheckFile(path); err != nil {
		return nil, err
	}
	// The file may have another name elsewhere, where its content is to stay.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// read reads a file; nil if there is none.
func (w *Workspace) read(parts ...string) ([]byte, error) {
	text, err := regularfile.ReadBelow(maxState, w.dir, parts...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// removeAll removes a directory of the workspace with what is in it.
func (w *Workspace) removeAll(parts ...string) error {
	path, err := w.path(parts...)
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
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
