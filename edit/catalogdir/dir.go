package catalogdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/filelock"
	"github.com/operator-bindery/bindery/internal/filetx"
)

var (
	// ErrLocked is returned if another edit holds the directory's lock.
	ErrLocked = errors.New("another edit is changing the catalog directory")
	// ErrChanged is returned if another program changed a file after it was read.
	ErrChanged = filetx.ErrChanged
	// ErrPlace is returned for files that cannot be changed in place: links, mount points, read-only files, and invalid
	// names.
	ErrPlace = errors.New("cannot be changed here")
	// ErrComments is returned by [Dir.Format] for a file whose comments the canonical form would lose.
	ErrComments = errors.New("has comments, which the canonical form lacks")
)

// Options configure an edit. The zero value suits most.
type Options struct {
	// Wait is how long to wait for another edit of the directory; 10 seconds by default.
	Wait time.Duration
	// Jobs is how many files are parsed concurrently; 0 means one per processor.
	Jobs int
	// Format is the format of new files in a catalog without other files; JSON by default.
	Format declcfg.Format
	// ReadOnly allows [Dir.Load] and [Dir.Plan] only. Leftovers of a killed edit are not removed.
	ReadOnly bool
	// Warn is the callback of [declcfg.LoadOptions].
	Warn func(declcfg.Position, string)
}

const defaultWait = 10 * time.Second

// Dir is a catalog directory open for editing. Other edits of it wait until Close. It is not safe for concurrent use.
type Dir struct {
	name    string // as given by the caller
	options Options
	root    *os.Root
	lock    *os.File
	index   *index // nil until the directory is read, and after a change
	hooks   filetx.Hooks
}

// Open begins an edit of the directory dir, which may be a symbolic link. It waits for another edit and returns
// [ErrLocked] after [Options.Wait]. It rolls back an edit that was killed before all its files were in place and
// removes its leftovers.
func Open(ctx context.Context, dir string, o Options) (*Dir, error) {
	if dir == "" {
		// an empty name does not mean the working directory
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	o.Wait = cmp.Or(o.Wait, defaultWait)
	o.Format = cmp.Or(o.Format, declcfg.FormatJSON)
	d := &Dir{name: dir, options: o}
	err := d.lockDir(ctx)
	if err == nil {
		err = d.settle()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// lockDir opens and locks the directory. The lock is on the directory itself, so no lock file is needed.
func (d *Dir) lockDir(ctx context.Context) error {
	waiting, cancel := context.WithTimeoutCause(ctx, d.options.Wait, ErrLocked)
	defer cancel()
	for {
		path, err := filepath.Abs(d.name)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return err
		}
		if d.root, err = os.OpenRoot(path); err != nil {
			return err
		}
		if d.lock, err = d.root.Open("."); err != nil {
			return err
		}
		// Without locks, a second edit fails later because files changed after it read them.
		if err := filelock.Lock(waiting, d.lock); err != nil {
			if errors.Is(err, ErrLocked) {
				err = fmt.Errorf("%s: %w", d.name, err)
			}
			return err
		}
		same, err := isFile(path, d.lock)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if same {
			return nil
		}
		// While this process waited, another program replaced or removed the directory.
		if err := d.Close(); err != nil {
			return err
		}
	}
}

// isFile reports whether a path still names an open file.
func isFile(path string, f *os.File) (bool, error) {
	open, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return os.SameFile(open, named), nil
}

// settle rolls back an incomplete edit of a killed process and removes its leftovers.
func (d *Dir) settle() error {
	settle := filetx.Recover
	if d.options.ReadOnly {
		settle = filetx.Check
	}
	if err := settle(d.root); err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	return nil
}

// Close ends the edit. It may be called more than once.
func (d *Dir) Close() error {
	var errs []error
	if d.root != nil {
		errs = append(errs, d.root.Close())
		d.root = nil
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
		d.lock = nil
	}
	d.index = nil
	return errors.Join(errs...)
}

// ready reads the directory's index unless it is up to date.
func (d *Dir) ready(ctx context.Context) error {
	if d.index != nil {
		return nil
	}
	_, err := d.Load(ctx, func(string) bool { return false })
	return err
}
