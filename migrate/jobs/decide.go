package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// decide reports whether the line is done, given its record, and otherwise whether it may be done now: nothing that
// cannot be rebuilt may be overwritten.
func (t *Task) decide(ctx context.Context) (done bool, err error) {
	w := t.record.Written
	if w == nil {
		return false, nil // all attempts failed
	}
	var differ []string
	for _, d := range []struct {
		what  string
		other bool
	}{
		{"from another source or changed content", w.Input != t.source.Input},
		{"with other settings", w.Settings != t.run.o.Settings(t.Line)},
		{"by release " + w.Tool, w.Tool != t.run.o.Tool},
		{"without being verified", t.run.o.Verify && (w.Report == nil || w.Report.Verification == nil)},
		{"without invalid packages", !t.run.o.KeepGoing && w.incomplete()},
	} {
		if d.other {
			differ = append(differ, d.what)
		}
	}
	there, err := t.directory(ctx, w, len(differ) == 0)
	if err != nil {
		return false, err
	}
	if len(differ) > 0 {
		return false, t.mayReplace(there, w, strings.Join(differ, ", "))
	}
	if there == changed {
		return false, t.changed()
	}
	if w.Complete && (there == intact || t.Directory == "") {
		if same, err := t.imagesThere(ctx, w); err != nil || same {
			return same && err == nil, t.settled(err)
		}
	}
	if !w.Complete && there == intact && len(t.Destinations) == 0 && w.Report != nil {
		// The run was killed after the directory was renamed, possibly before the old one was removed.
		return true, errors.Join(atomicfs.Sweep(t.Directory), t.complete())
	}
	return false, t.replace(there, w)
}

// settled removes the error of an earlier failed attempt from the record.
func (t *Task) settled(err error) error {
	if err != nil || t.record.Error == nil {
		return err
	}
	return t.complete()
}

// presence is the state of the output directory.
type presence int

const (
	absent  presence = iota
	intact           // as recorded
	older            // as recorded before the last write
	changed          // anything else
)

// directory compares the output directory with the record. With quick it compares only the number and sizes of the
// files.
func (t *Task) directory(ctx context.Context, w *Written, quick bool) (presence, error) {
	if t.Directory == "" {
		return absent, nil
	}
	entries, err := os.ReadDir(t.Directory)
	switch empty := w.Directory != nil && w.Directory.Files == 0; {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0 && !empty:
		return absent, nil
	}
	if err != nil {
		return changed, err
	}
	if quick && w.Complete && w.Directory != nil {
		now, err := measure(t.Directory)
		if err != nil {
			return changed, err
		}
		if now.Files == w.Directory.Files && now.Bytes == w.Directory.Bytes {
			return intact, nil
		}
		return changed, nil
	}
	now, err := sumTree(ctx, t.Directory)
	switch {
	case err != nil:
		return changed, err
	case w.Directory != nil && now == *w.Directory:
		return intact, nil
	case w.Before != nil && now == *w.Before:
		return older, nil
	}
	return changed, nil
}

// mayReplace decides about outputs with unexpected content.
func (t *Task) mayReplace(there presence, w *Written, differ string) error {
	switch {
	case there == changed:
		return t.changed()
	case there == absent && (len(t.Destinations) == 0 || !w.Complete):
		return nil
	case !t.run.o.Overwrite:
		return fmt.Errorf("%w (%s): replace them with --overwrite", ErrOther, differ)
	}
	return t.replace(there, w)
}

// replace allows the existing directory to be replaced.
func (t *Task) replace(there presence, w *Written) error {
	switch there {
	case intact:
		t.Replace, t.before = true, w.Directory
	case older:
		t.Replace, t.before = true, w.Before
	}
	return nil
}

// ErrOther is returned for outputs that hold the result of another input, other settings or another release.
var ErrOther = errors.New("the outputs exist, but were written differently")

// changed returns the error for an output directory that was modified since: it is not overwritten.
func (t *Task) changed() error {
	return fmt.Errorf("the output directory %q was changed since it was written: remove it to recreate it", t.Directory)
}

// imagesThere reports whether every destination still has the image.
func (t *Task) imagesThere(ctx context.Context, w *Written) (bool, error) {
	for _, d := range t.Destinations {
		if d.InFiles() {
			if _, err := os.Lstat(d.Path); errors.Is(err, fs.ErrNotExist) {
				return false, nil
			} else if err != nil {
				return false, err
			}
		}
		if d.Transport == transport.OCIArchive || d.Transport == transport.DockerArchive {
			continue // reading an archive would take as long as writing it, so only its existence is checked
		}
		at, err := t.run.o.Images.UnverifiedDigest(ctx, d.String())
		if err != nil {
			return false, err
		}
		if at.String() != w.Image {
			return false, nil
		}
	}
	return true, nil
}
