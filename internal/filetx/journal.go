package filetx

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Names of the journal in the staging directory, before and after the commit.
const (
	journalFile   = "journal"
	committedFile = "committed"
)

// journal has what is needed to roll back a transaction.
type journal struct {
	Files []journalEntry `json:"files"`
	// Made are the directories that the transaction creates, parents first.
	Made []string `json:"made,omitempty"`
}

// journalEntry is one change. The old file has a second hard link in the staging directory, named by the index of the
// entry.
type journalEntry struct {
	Name     string    `json:"name"`
	Staged   string    `json:"staged,omitempty"`
	Replaces bool      `json:"replaces,omitempty"` // there is an old file
	New      *identity `json:"new,omitempty"`
}

// identity identifies a file.
type identity struct {
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
}

// matches reports whether a name refers to that file.
func (id *identity) matches(info fs.FileInfo) bool {
	return id != nil && info.Size() == id.Size && info.ModTime().Equal(id.ModTime)
}

func newJournal(root *os.Root, changes []Change) *journal {
	j := &journal{}
	for _, c := range changes {
		e := journalEntry{Name: c.Name, Staged: c.Staged, Replaces: c.Old != nil}
		if c.New != nil {
			e.New = &identity{c.New.Size(), c.New.ModTime()}
		}
		j.Files = append(j.Files, e)
		for dir := path.Dir(c.Name); c.Old == nil && dir != "."; dir = path.Dir(dir) {
			if _, err := root.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				j.Made = append(j.Made, dir)
			}
		}
	}
	slices.SortFunc(j.Made, strings.Compare) // a parent is a prefix of its subdirectories
	j.Made = slices.Compact(j.Made)
	return j
}

// dirs returns the directories whose entries change.
func (j *journal) dirs() []string {
	var dirs []string
	for _, e := range j.Files {
		dirs = append(dirs, path.Dir(e.Name))
	}
	for _, dir := range j.Made {
		dirs = append(dirs, path.Dir(dir))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func backupPath(stage string, n int) string { return path.Join(stage, fmt.Sprintf("old-%d", n)) }

// writeJournal writes the journal and syncs it.
func (tx *Tx) writeJournal(j *journal) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := tx.write("journal.new", data); err != nil {
		return err
	}
	if err := tx.root.Rename(tx.path("journal.new"), tx.path(journalFile)); err != nil {
		return err
	}
	return errors.Join(syncDir(tx.root, tx.stage), syncDir(tx.root, "."))
}

// markCommitted renames the journal: from now on the transaction is not rolled back.
func (tx *Tx) markCommitted() error {
	if err := tx.root.Rename(tx.path(journalFile), tx.path(committedFile)); err != nil {
		return err
	}
	if err := syncDir(tx.root, tx.stage); err != nil {
		return errors.Join(err, tx.root.Rename(tx.path(committedFile), tx.path(journalFile)))
	}
	return nil
}

// removeEmptied removes the directories that became empty.
func (j *journal) removeEmptied(root *os.Root) error {
	var errs []error
	for _, e := range j.Files {
		for dir := path.Dir(e.Name); e.Staged == "" && dir != "."; dir = path.Dir(dir) {
			err := root.Remove(dir)
			if errors.Is(err, fs.ErrExist) { // not empty
				break
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
				break
			}
		}
	}
	return errors.Join(errs...)
}

// undo restores the old files. It can be repeated and continues an interrupted commit or undo.
func (j *journal) undo(root *os.Root, stage string) error {
	var errs []error
	for i, e := range slices.Backward(j.Files) {
		if err := e.undo(root, backupPath(stage, i)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Name, err))
		}
	}
	for _, dir := range slices.Backward(j.Made) {
		_ = root.Remove(dir) // fails if it is not empty
	}
	return errors.Join(errs...)
}

func (e *journalEntry) undo(root *os.Root, backup string) error {
	now, err := root.Lstat(e.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	free := err != nil
	if !e.Replaces {
		if free || !e.New.matches(now) {
			return nil // the new file is not there yet, or another program wrote the name
		}
		return root.Remove(e.Name)
	}
	if _, err := root.Lstat(backup); errors.Is(err, fs.ErrNotExist) {
		return nil // unchanged so far, or restored already
	}
	if free {
		return renameIfFree(root, backup, e.Name)
	}
	if e.Staged != "" {
		if _, err := root.Lstat(e.Staged); err == nil {
			return nil // not replaced yet
		}
		if e.New.matches(now) {
			return root.Rename(backup, e.Name)
		}
	}
	return fmt.Errorf("it was changed since; the old file is %s: %w", backup, ErrChanged)
}
