package catalogdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/filetx"
)

// carryOut writes the files of an edit and puts them in place: all of them or none.
func (d *Dir) carryOut(ctx context.Context, edits []*fileEdit) (err error) {
	tx, err := filetx.Begin(d.root, d.hooks)
	if err != nil {
		return err
	}
	defer func() {
		// If removing the temporary files fails after success, the next edit removes them.
		if cerr := tx.Close(); err != nil {
			err = errors.Join(err, cerr)
		}
	}()
	var changes []filetx.Change
	var texts declcfg.Texts
	for _, e := range edits {
		c := filetx.Change{Name: e.name}
		if e.file != nil {
			c.Old = e.file.info
		}
		if !e.empty() {
			if c.Staged, c.New, err = d.writeFile(ctx, tx, e, &texts); err != nil {
				return err
			}
			d.step("write")
		}
		changes = append(changes, c)
	}
	d.step("written")
	if err := d.nothingChanged(edits); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return tx.Commit(ctx, changes)
}

// nothingChanged checks that the files to change are unmodified since they were read, and that the names of new ones
// are unused.
func (d *Dir) nothingChanged(edits []*fileEdit) error {
	for _, e := range edits {
		if e.file != nil {
			if err := d.unchanged(e.file); err != nil {
				return err
			}
			continue
		}
		if _, err := d.root.Lstat(e.name); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(&fs.PathError{Op: "create", Path: e.name, Err: fs.ErrExist}, ErrChanged)
		}
	}
	return nil
}

// maxFileSize is what readers of catalogs take at most, see [declcfg.Limits].
const maxFileSize = 1 << 30

// writeFile writes, verifies and syncs the new file of an edit.
func (d *Dir) writeFile(ctx context.Context, tx *filetx.Tx, e *fileEdit,
	texts *declcfg.Texts) (staged string, info fs.FileInfo, err error) {
	var from *documentReader
	if e.file != nil {
		if from, err = d.openDocuments(e.file); err != nil {
			return "", nil, err
		}
		defer func() { err = errors.Join(err, from.Close()) }()
	}
	form, err := d.formFor(e)
	if err != nil {
		return "", nil, err
	}
	out, staged, err := tx.Create()
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	spans, err := rewrite(ctx, out, e, from, form, texts)
	if err != nil {
		return "", nil, err
	}
	if _, err := out.Seek(0, 0); err != nil {
		return "", nil, err
	}
	if err := verify(out, spans); err != nil {
		return "", nil, fmt.Errorf("%s cannot be edited in place: %w", e.name, err)
	}
	if e.file != nil {
		if err := atomicfs.KeepOwner(out, e.file.info); err != nil {
			return "", nil, err
		}
		if err := out.Chmod(e.file.info.Mode()); err != nil {
			return "", nil, err
		}
	}
	if info, err = out.Stat(); err != nil {
		return "", nil, err
	}
	if info.Size() > maxFileSize {
		return "", nil, fmt.Errorf("%s would have %d bytes: %w (limit %d)",
			e.name, info.Size(), declcfg.ErrLimit, maxFileSize)
	}
	return staged, info, out.Sync()
}

// formFor returns the formatting of the blobs of a new file.
func (d *Dir) formFor(e *fileEdit) (form, error) {
	if e.like == nil {
		return defaultForm(e.json), nil
	}
	r, err := d.openDocuments(e.like.file)
	if err != nil {
		return form{}, err
	}
	defer r.Close()
	text, err := r.text(e.like.start, e.like.end)
	if err != nil {
		return form{}, err
	}
	crlf := strings.Contains(string(nextLine(text)), "\r\n")
	return formOf(text, e.like.json, crlf), nil
}

// step calls the hook of tests, which look at the directory or kill the process at each step.
func (d *Dir) step(name string) {
	if d.hooks.Step != nil {
		d.hooks.Step(name)
	}
}
