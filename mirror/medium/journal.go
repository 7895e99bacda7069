package medium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/filelock"
	"github.com/operator-bindery/bindery/mirror/internal/nolink"
)

// journal tells what the unfinished segments are of. Its file is locked while they are written.
type journal struct {
	Version int    `json:"version"`
	Form    Form   `json:"form"`
	Key     string `json:"key"`
}

// maxJournal is how large the files of a directory of an archive are that are no segments.
const maxJournal = 64 << 20

// lockAndRecover locks the directory, ends a commit that was interrupted, and reads or removes unfinished segments.
func (w *Writer) lockAndRecover(ctx context.Context) error {
	for w.lock == nil {
		if err := w.lockJournal(); err != nil {
			return err
		}
		p, err := pendingCommit(w.root)
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		if _, err := rollForward(w.root, w.dir, *p); err != nil {
			return fmt.Errorf("finishing the archive of the last run: %w", err)
		}
		// The journal is gone, and with it the lock.
		if err := w.lock.Close(); err != nil {
			return err
		}
		w.lock = nil
	}
	text, err := io.ReadAll(io.LimitReader(w.lock, maxJournal)) // a longer one is of no run
	if err != nil {
		return err
	}
	want := journal{Version: contentsVersion, Form: w.o.Form, Key: w.o.Key}
	var have journal
	names, err := partials(w.root)
	if err != nil {
		return err
	}
	if json.Unmarshal(text, &have) == nil && have == want {
		return w.resume(ctx, names)
	}
	if len(names) > 0 {
		w.warn(fmt.Errorf("the unfinished archive in %s is of another run and is removed", w.dir))
		if err := w.removePartials(); err != nil {
			return err
		}
	}
	return w.writeJournal(want)
}

func (w *Writer) writeJournal(j journal) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := w.lock.Truncate(0); err != nil {
		return err
	}
	if _, err := w.lock.WriteAt(text, 0); err != nil {
		return w.written(err)
	}
	return errors.Join(w.lock.Sync(), atomicfs.SyncDir(w.dir))
}

func (w *Writer) lockJournal() error {
	for {
		// A link is not followed, and a FIFO not opened.
		if is, err := w.root.Lstat(journalFile); err == nil {
			if err := nolink.CheckOwn(journalFile, is); err != nil {
				return err
			}
		}
		f, err := w.root.OpenFile(journalFile, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		held, err := filelock.Take(f)
		if err == nil && !held {
			err = ErrBusy
		}
		var opened, is fs.FileInfo
		if err == nil {
			opened, err = f.Stat()
		}
		if err == nil {
			err = nolink.CheckOwn(journalFile, opened)
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		// Another process that finished meanwhile has removed the file.
		if is, err = w.root.Lstat(journalFile); err == nil && os.SameFile(opened, is) {
			w.lock = f
			return nil
		}
		if cerr := f.Close(); cerr != nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, cerr)
		}
	}
}

// pendingCommit returns what a commit was giving names; nil if there was none.
func pendingCommit(root *os.Root) (*pending, error) {
	text, err := readRegular(root, commitFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p pending
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("%s: %w: %v", commitFile, fault.ErrInvalid, err)
	}
	if len(p.Segments) == 0 {
		return nil, fmt.Errorf("%s: %w: no segments", commitFile, fault.ErrInvalid)
	}
	names := slices.Clone(p.Kept)
	for _, s := range p.Segments {
		names = append(names, s.Name)
	}
	if err := checkNames(names); err != nil {
		return nil, fmt.Errorf("%s: %w", commitFile, err)
	}
	return &p, nil
}

func openRegular(root *os.Root, name string) (*os.File, int64, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%w: %.200q is not a regular file", fault.ErrInvalid, name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func readRegular(root *os.Root, name string) ([]byte, error) {
	f, size, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxJournal {
		return nil, fmt.Errorf("%s: %w: %d bytes (limit %d)", name, fault.ErrLimit, size, maxJournal)
	}
	return io.ReadAll(io.LimitReader(f, maxJournal))
}

// partials returns the names of unfinished segments, in order.
func partials(root *os.Root) ([]string, error) { return matching(root, partialName()) }

// segmentNames returns the names of the segments in a directory, in order.
func segmentNames(root *os.Root) ([]string, error) { return matching(root, segmentExpr()) }

func matching(root *os.Root, name *regexp.Regexp) ([]string, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name.MatchString(e.Name()) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
