package layouts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// StagePrefix begins the name of every stage, so that the next run can remove the stages of killed runs.
const StagePrefix = ".bindery-stage-"

// Stage is a private directory beside or inside an output, in the same file system, where the output is prepared. It is
// locked as long as its process lives.
type Stage struct {
	Path  string
	lock  *filelock.Dir
	spare []*os.File // descriptors reserved for Close, which must work after a failure caused by a lack of descriptors
}

// spareFiles is how many descriptors the removal of a staged layout takes: one for each level of directories.
const spareFiles = 5

// NewStage makes a stage in a directory and removes abandoned stages there. It does not wait for locks: in a directory
// for temporary files any user can hold one.
func NewStage(ctx context.Context, in string) (*Stage, error) {
	Sweep(in, nil)
	for attempt := 1; ; attempt++ {
		s, err := claimedStage(ctx, in)
		if err == nil || !errors.Is(err, errSwept) || attempt == stageAttempts {
			return s, err
		}
	}
}

// stageAttempts bounds how often another run may remove a new stage as abandoned, before it is locked.
const stageAttempts = 10

var errSwept = errors.New("another run has removed it")

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

// SweepBeside removes abandoned stages beside an output whose stages are inside. A run that is killed just after it has
// put a new output in place leaves one there.
func SweepBeside(path string) {
	Sweep(filepath.Dir(filepath.Clean(path)), nil)
}

// Sweep removes abandoned stages, unless another run has locked the directory. Those that cannot be removed are left
// for a later run. undo, unless nil, is called for each before that.
func Sweep(in string, undo func(stage string)) {
	own, free := filelock.TryDir(in)
	if !free {
		return
	}
	defer own.Unlock()
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
		if undo != nil {
			undo(path)
		}
		forgetBlobs(in, filepath.Join(path, stagedLayout))
		os.RemoveAll(path)
		lock.Unlock()
	}
}

// Close removes the stage and its content.
func (s *Stage) Close() error {
	for _, f := range s.spare {
		f.Close()
	}
	s.spare = nil
	err := os.RemoveAll(s.Path)
	s.lock.Unlock()
	// The reserved descriptors are free now, and others soon, when concurrent work has ended.
	for pause := time.Millisecond; err != nil && pause < time.Second; pause *= 2 {
		if err = os.RemoveAll(s.Path); err != nil {
			time.Sleep(pause)
		}
	}
	return err
}

// Join returns the path of a name in the stage.
func (s *Stage) Join(name string) string { return filepath.Join(s.Path, name) }

// Parents creates a directory and its parents, and returns those that were missing, outermost first.
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

// RemoveEmpty removes directories that [Parents] created, if they are empty, the last one first.
func RemoveEmpty(made []string) {
	for _, path := range slices.Backward(made) {
		os.Remove(path)
	}
}

// LstatOutput returns information about an output, or nil if it does not exist. A symbolic link is an error.
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

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteSync writes and synchronises a new file.
func WriteSync(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
