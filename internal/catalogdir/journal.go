package catalogdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
)

// The names of a journal in the stage: while files are put in place, and when all of them are.
const (
	journalName = "journal"
	doneName    = "done"
)

// journal is what undoes an edit whose files are put in place one by one.
type journal struct {
	Files []journalFile `json:"files"`
	// Made are directories that are made, those above others first; Emptied are those that are removed in the end, the
	// deepest first.
	Made    []string `json:"made,omitempty"`
	Emptied []string `json:"emptied,omitempty"`
}

// journalFile is a name that gets another file. What it stood for is kept in the stage under its number.
type journalFile struct {
	Name   string    `json:"name"`
	Staged string    `json:"staged,omitempty"`
	Old    *identity `json:"old,omitempty"`
	New    *identity `json:"new,omitempty"`
}

// identity distinguishes files.
type identity struct {
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
}

func identify(info fs.FileInfo) *identity {
	if info == nil {
		return nil
	}
	return &identity{info.Size(), info.ModTime()}
}

// is reports whether a name stands for that file.
func (id *identity) is(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && id != nil && info.Size() == id.Size && info.ModTime().Equal(id.ModTime)
}

func newJournal(p *placement, moves []*move) *journal {
	j := &journal{}
	for _, m := range moves {
		j.Files = append(j.Files, journalFile{m.name, m.staged, identify(m.old), identify(m.new)})
		if m.old == nil {
			for _, dir := range parents(m.name) {
				if _, err := p.dir.root.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
					j.Made = append(j.Made, dir)
				}
			}
		}
		if m.staged == "" && !m.old.IsDir() {
			top, err := p.emptied(path.Dir(m.name))
			for dir := path.Dir(m.name); err == nil && top != "" && within(dir, top); dir = path.Dir(dir) {
				j.Emptied = append(j.Emptied, dir)
			}
		}
	}
	j.Made = unique(j.Made)
	j.Emptied = unique(j.Emptied)
	slices.Reverse(j.Emptied)
	return j
}

// dirs are the directories whose entries change.
func (j *journal) dirs() []string {
	var dirs []string
	for _, f := range j.Files {
		dirs = append(dirs, path.Dir(f.Name))
	}
	for _, dir := range j.Made {
		dirs = append(dirs, path.Dir(dir))
	}
	return unique(dirs)
}

// write brings the journal to the disk, before anything is done.
func (j *journal) write(s *stage) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := s.write("journal.new", data); err != nil {
		return err
	}
	if err := s.dir.root.Rename(s.path("journal.new"), s.path(journalName)); err != nil {
		return err
	}
	if err := s.dir.sync(s.name); err != nil {
		return err
	}
	return s.dir.sync(".")
}

// close says that the edit is done.
func (j *journal) close(s *stage) error {
	if err := s.dir.root.Rename(s.path(journalName), s.path(doneName)); err != nil {
		return err
	}
	if err := s.dir.sync(s.name); err != nil {
		return errors.Join(err, s.dir.root.Rename(s.path(doneName), s.path(journalName)))
	}
	return nil
}

// clear removes the directories that are empty after the edit. Those that somebody has put something into stay.
func (j *journal) clear(root *os.Root) error {
	var errs []error
	for _, dir := range j.Emptied {
		info, err := root.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			continue
		}
		entries, err := readDir(root, dir)
		if err == nil && len(entries) == 0 {
			err = root.Remove(dir)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// undo brings back what was there. It may be repeated, and begins wherever the edit, or an undoing, ended.
func (j *journal) undo(root *os.Root, stage string) error {
	var errs []error
	for i, f := range slices.Backward(j.Files) {
		if err := f.undo(root, path.Join(stage, oldName(i))); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Name, err))
		}
	}
	for _, dir := range slices.Backward(j.Made) {
		_ = root.Remove(dir) // if it is empty
	}
	return errors.Join(errs...)
}

func (f *journalFile) undo(root *os.Root, old string) error {
	if f.Old == nil {
		if _, err := root.Lstat(f.Staged); err == nil {
			return nil // it was not put in place
		}
		if !f.New.is(root, f.Name) {
			return nil // somebody has removed it, or put something else there
		}
		return root.Rename(f.Name, f.Staged)
	}
	if f.Staged != "" && f.Old.is(root, f.Staged) {
		old = f.Staged // it was killed between the exchange and the next step
	}
	if _, err := root.Lstat(old); errors.Is(err, fs.ErrNotExist) {
		return nil // it was not touched, or is back already
	}
	_, err := root.Lstat(f.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return renameNoReplace(root, old, f.Name)
	case f.Staged != "" && (f.New.is(root, f.Name) || f.Old.is(root, f.Name)):
		return root.Rename(old, f.Name)
	}
	return fmt.Errorf("it was changed since; what was there is %s: %w", old, ErrChanged)
}

// undoInterrupted undoes the edit that has left a stage, if it was putting its files in place.
func (d *Dir) undoInterrupted(stage string) error {
	j, err := readJournal(d.root, path.Join(stage, doneName))
	if err == nil {
		return j.clear(d.root)
	}
	if errors.Is(err, fs.ErrNotExist) {
		j, err = readJournal(d.root, path.Join(stage, journalName))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if err := j.undo(d.root, stage); err != nil {
		return err
	}
	for _, dir := range j.dirs() {
		if err := d.sync(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func readJournal(root *os.Root, name string) (*journal, error) {
	data, err := readSmall(root, name)
	if err != nil {
		return nil, err
	}
	j := &journal{}
	if err := json.Unmarshal(data, j); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return j, nil
}
