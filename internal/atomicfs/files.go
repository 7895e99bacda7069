package atomicfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Content is a whole file that is to be written.
type Content struct {
	Path string
	Data []byte
	// Perm are the permissions before umask.
	Perm fs.FileMode
}

// WriteFiles writes several files of which none replaces another, in directories that are there. All of them are on the disk
// before the first appears under its name; after an error every name stands for what it stood for before. A crash can leave
// some of them written, each whole.
func WriteFiles(ctx context.Context, contents []Content) (err error) {
	var files []*File
	var swapped []old
	defer func() {
		for i := len(files) - 1; i >= 0; i-- {
			if err != nil && i < len(swapped) {
				err = errors.Join(err, files[i].swapBack(swapped[i]))
			}
			err = errors.Join(err, files[i].Abort())
		}
	}()
	for _, c := range contents {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f, err := NewFile(c.Path, c.Perm)
		if err != nil {
			return err
		}
		files = append(files, f)
		if _, err := f.Write(c.Data); err != nil {
			return fmt.Errorf("write %s: %w", c.Path, err)
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	for _, f := range files {
		o, err := f.swap()
		if err != nil {
			return err
		}
		swapped = append(swapped, o)
	}
	var errs []error
	for i, f := range files {
		errs = append(errs, f.forget(swapped[i]))
	}
	swapped = nil // what could not be tidied up does not undo what is written
	return errors.Join(errs...)
}
