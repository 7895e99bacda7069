package layouts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// StagePrefix begins the name of every stage, so that the next run knows what a killed one has left.
const StagePrefix = ".bindery-stage-"

// Stage is a private directory beside or inside an output, in the same file system, where the output is prepared. It
// is locked as long as its owner lives.
type Stage struct {
	Path  string
	lock  *filelock.Dir
	spare []*os.File // descriptors for tidying, which needs some, where the run has failed because there were no more
}

// spareFiles is how many descriptors it takes to remove a staged layout: one for each directory that leads to its blobs.
const spareFiles = 5

// NewStage makes a stage in the directory and removes the stages there whose owners are gone. It waits for nobody: the
// directory may be one for temporary files, of which any user can hold the lock.
func NewStage(ctx context.Context, in string) (*Stage, error) {
	if lock, free := filelock.TryDir(in); free {
		sweep(in)
		lock.Unlock()
	}
	for attempt := 1; ; attempt++ {
		s, err := claimedStage(ctx, in)
		if err == nil || !errors.Is(err, errSwept) || attempt == stageAttempts {
			return s, err
		}
	}
}

// stageAttempts is how often a stage may be taken for an abandoned one, between its creation and its locking.
const stageAttempts = 10

var errSwept = errors.New("another run has removed it")

// claimedStage makes a stage and locks it.
func claimedStage(ctx context.Context, in string) (*Stage, error) {
	path, err := os.MkdirTemp(in, StagePrefix)
	if err != nil {
		return nil, err
	}
	own, err := filelock.LockDir(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, errSwept)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	if _, err := os.Lstat(path); err != nil {
		own.Unlock()
		return nil, fmt.Errorf("%s: %w", path, errSwept)
	}
	s := &Stage{Path: path, lock: own}
	for range spareFiles {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.spare = append(s.spare, f)
	}
	return s, nil
}

// SweepBeside removes abandoned stages beside an output that has its own inside: a run that is killed after it has put the
// Output there for the first time leaves them.
func SweepBeside(path string) {
	parent := filepath.Dir(filepath.Clean(path))
	if lock, free := filelock.TryDir(parent); free {
		sweep(parent)
		lock.Unlock()
	}
}

// sweep removes abandoned stages. It is housekeeping: what cannot be removed now is left to a later run.
func sweep(in string) {
	names, err := os.ReadDir(in)
	if err != nil {
		return
	}
	for _, n := range names {
		if !n.IsDir() || !strings.HasPrefix(n.Name(), StagePrefix) {
			continue
		}
		path := filepath.Join(in, n.Name())
		lock, abandoned := filelock.TryDir(path)
		if !abandoned {
			continue
		}
		forgetBlobs(in, filepath.Join(path, stagedLayout))
		os.RemoveAll(path)
		lock.Unlock()
	}
}

// Close removes the stage and whatever is still in it.
func (s *Stage) Close() error {
	for _, f := range s.spare {
		f.Close()
	}
	s.spare = nil
	err := os.RemoveAll(s.Path)
	s.lock.Unlock()
	// Where descriptors are short, there is one more now; others come back when what else was going on has ended.
	for pause := time.Millisecond; err != nil && pause < time.Second; pause *= 2 {
		if err = os.RemoveAll(s.Path); err != nil {
			time.Sleep(pause)
		}
	}
	return err
}

// Join is the path of a name in the stage.
func (s *Stage) Join(name string) string { return filepath.Join(s.Path, name) }

// Parents creates the missing directories that lead to an output and returns those that it made, outermost first.
func Parents(dir string) (made []string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err == nil {
			if !info.IsDir() {
				return nil, fmt.Errorf("%s is not a directory", d)
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		made = append([]string{d}, made...)
	}
	return made, os.MkdirAll(dir, 0o755)
}

// RemoveEmpty undoes [Parents] for directories that nobody has used since.
func RemoveEmpty(made []string) {
	for i := len(made) - 1; i >= 0; i-- {
		os.Remove(made[i])
	}
}

// LstatOutput looks at an output path without following it. It returns nil information if nothing is there.
func LstatOutput(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s is a symbolic link; outputs are never written through one", path)
	}
	return info, nil
}

// syncFile brings a file's content to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteSync writes a new file and brings it to the disk.
func WriteSync(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
