package atomicfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Content is the whole content of a file to write.
type Content struct {
	Path string
	Data []byte
	// Perm are the permissions before umask.
	Perm fs.FileMode
	// New is a file that must not exist: if it does, the error is [fs.ErrExist].
	New bool
}

// WriteFiles writes several files into existing directories. All of them are durable under temporary names before the
// first is renamed; after an error all names have their previous content. A crash can leave some of the files replaced,
// each of them complete.
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
	for i, f := range files {
		put := f.swap
		if contents[i].New {
			put = f.create
		}
		o, err := put()
		if err != nil {
			return err
		}
		swapped = append(swapped, o)
	}
	var errs []error
	for i, f := range files {
		errs = append(errs, f.forget(swapped[i]))
	}
	swapped = nil // a failure to remove old files does not undo the new ones
	return errors.Join(errs...)
}
