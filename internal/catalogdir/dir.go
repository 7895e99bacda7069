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
	// ErrLocked is about a directory that another edit holds.
	ErrLocked = errors.New("another edit is changing the catalog directory")
	// ErrChanged is about a file that another program has changed since it was read.
	ErrChanged = filetx.ErrChanged
	// ErrPlace is about files that must not be changed where they are: links, volumes, read-only files, and names that
	// cannot be given.
	ErrPlace = errors.New("cannot be changed here")
)

// Options say how a directory is edited. The zero value is good for most.
type Options struct {
	// Wait is how long another edit of the directory is waited for; 10 seconds by default.
	Wait time.Duration
	// Jobs is how many files are parsed at once; 0 means one per processor.
	Jobs int
	// Format is that of new files where no other file of the catalog gives an example; JSON by default.
	Format declcfg.Format
	// ReadOnly allows [Dir.Load] and [Dir.Plan] only. What a killed edit has left is not removed then.
	ReadOnly bool
	// Warn is that of [declcfg.LoadOptions].
	Warn func(declcfg.Position, string)
}

const defaultWait = 10 * time.Second

// Dir is a catalog directory that is being edited. No other edit of it begins before Close. It is not safe for
// concurrent use.
type Dir struct {
	name    string // as the user calls it
	options Options
	root    *os.Root
	lock    *os.File
	index   *index // nil until the directory is read, and after it was changed
	hooks   filetx.Hooks
}

// Open begins an edit of the directory dir, which may be a link to one. If another edit is going on, it waits for
// that, and returns [ErrLocked] in the end. It takes back an edit that was killed before all its files were in place,
// and removes what that has left.
func Open(ctx context.Context, dir string, o Options) (*Dir, error) {
	if dir == "" {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist} // not the working directory
	}
	o.Wait = cmp.Or(o.Wait, defaultWait)
	o.Format = cmp.Or(o.Format, declcfg.FormatJSON)
	d := &Dir{name: dir, options: o}
	err := d.take(ctx)
	if err == nil {
		err = d.settle()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// take opens the directory and takes its lock. The lock is one of the directory itself: nothing has to be made for
// it, and nothing of it is left.
func (d *Dir) take(ctx context.Context) error {
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
		// Where there are no locks, the second process is stopped because files have changed since it read them.
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
		// While this waited, another program has put another directory in its place, or removed it.
		if err := d.Close(); err != nil {
			return err
		}
	}
}

// isFile reports whether a path names an open file.
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

// settle takes back what a killed edit has left half done, and removes what it has left.
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

// ready reads what is in the directory unless that is known.
func (d *Dir) ready(ctx context.Context) error {
	if d.index != nil {
		return nil
	}
	_, err := d.Load(ctx, func(string) bool { return false })
	return err
}
