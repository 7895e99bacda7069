package catalogdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
)

// apply makes moves one after the other, and takes all of them back if one fails. With a journal a killed edit is taken
// back by the next one.
func (p *placement) apply(ctx context.Context, moves []*move, withJournal bool) (err error) {
	d := p.dir
	j := newJournal(p, moves)
	if withJournal {
		if err := j.write(p.stage); err != nil {
			return err
		}
		d.step("journal")
	}
	defer func() {
		if err == nil {
			return
		}
		if uerr := j.undo(d.root, p.stage.name); uerr != nil {
			// What was there is in the stage: the next edit tries again to bring it back.
			p.stage.keep = true
			if !withJournal {
				uerr = errors.Join(uerr, j.write(p.stage))
			}
			err = errors.Join(err, fmt.Errorf("what was done could not be taken back, which the next edit tries again: %w", uerr))
		}
	}()
	for _, dir := range j.Made {
		if err := d.root.Mkdir(dir, 0o777); err != nil {
			return err
		}
	}
	for i, m := range moves {
		if err := d.makeMove(m, p.stage.path(oldName(i)), withJournal); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		d.step("move")
	}
	for _, dir := range j.dirs() {
		if err := d.sync(dir); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if withJournal {
		if err := j.close(p.stage); err != nil {
			return err
		}
		d.step("done")
	}
	// If it does not succeed, the next edit tries again: the files are in place.
	p.stage.keep = j.clear(d.root) != nil
	return nil
}

func oldName(i int) string { return fmt.Sprintf("old-%d", i) }

// makeMove makes a move. What was there is at the path old afterwards, in the stage.
func (d *Dir) makeMove(m *move, old string, withJournal bool) error {
	switch {
	case m.old == nil:
		return renameNoReplace(d.root, m.staged, m.name)
	case m.staged == "":
		return d.takeAway(m, old)
	}
	err := d.exchangeFiles(m.staged, m.name)
	if errors.Is(err, errors.ErrUnsupported) {
		return d.renameOver(m, old, withJournal)
	}
	if err != nil {
		return err
	}
	d.step("exchanged")
	was, err := d.root.Lstat(m.staged)
	if err == nil && !sameState(was, m.old) {
		err = ErrChanged
	}
	if err == nil {
		err = d.root.Rename(m.staged, old)
	}
	if err != nil {
		return errors.Join(err, d.exchangeFiles(m.staged, m.name))
	}
	return nil
}

func (d *Dir) exchangeFiles(a, b string) error {
	if d.steps.byRename {
		return errors.ErrUnsupported
	}
	return exchange(d.root, a, b)
}

// takeAway moves what is in the place of a move away.
func (d *Dir) takeAway(m *move, old string) error {
	var before snapshot
	if m.old.IsDir() {
		var err error
		if before, err = takeSnapshot(d.root, m.name); err != nil {
			return err
		}
	}
	if err := d.root.Rename(m.name, old); err != nil {
		return err
	}
	var err error
	if m.old.IsDir() {
		err = before.check(d.root, old, "")
	} else if was, serr := d.root.Lstat(old); serr != nil || !sameState(was, m.old) {
		err = errors.Join(ErrChanged, serr)
	}
	if err != nil {
		return errors.Join(err, renameNoReplace(d.root, old, m.name))
	}
	return nil
}

// renameOver puts a file in the place of another on systems that cannot exchange them. What was there has a second name
// first, so that the first always stands for a file. Where there are no such names, the first stands for nothing for a
// moment, from which a journal must know the way back; without one, there is no way back.
func (d *Dir) renameOver(m *move, old string, withJournal bool) error {
	if err := d.root.Link(m.name, old); err != nil {
		if !withJournal {
			if was, err := d.root.Lstat(m.name); err != nil || !sameState(was, m.old) {
				return errors.Join(ErrChanged, err)
			}
			return d.root.Rename(m.staged, m.name)
		}
		if err := d.root.Rename(m.name, old); err != nil {
			return err
		}
	}
	was, err := d.root.Lstat(old)
	if err == nil && !(os.SameFile(was, m.old) && was.Size() == m.old.Size() && was.ModTime().Equal(m.old.ModTime())) {
		err = ErrChanged
	}
	if err == nil {
		d.step("linked")
		err = d.root.Rename(m.staged, m.name)
	}
	if err != nil {
		return errors.Join(err, d.root.Rename(old, m.name))
	}
	return nil
}

// snapshot is what is in a directory and below it, by path relative to it.
type snapshot map[string]fs.FileInfo

// maxSnapshot bounds the entries of directories that are looked at as a whole.
const maxSnapshot = 200_000

var errTooMany = errors.New("too many files")

func takeSnapshot(root *os.Root, dir string) (snapshot, error) {
	s := snapshot{}
	return s, s.add(root, dir, "")
}

func (s snapshot) add(root *os.Root, dir, rel string) error {
	entries, err := readDir(root, path.Join(dir, rel))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		info, err := root.Lstat(path.Join(dir, name))
		if err != nil {
			return err
		}
		if s[name] = info; len(s) > maxSnapshot {
			return errTooMany
		}
		if info.IsDir() {
			if err := s.add(root, dir, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// check returns [ErrChanged] if a directory does not hold what it held, besides a stage.
func (s snapshot) check(root *os.Root, dir, stage string) error {
	now, err := takeSnapshot(root, dir)
	if err != nil {
		return err
	}
	for name, info := range now {
		if within(name, stage) {
			delete(now, name)
			continue
		}
		was, ok := s[name]
		if !ok || info.IsDir() != was.IsDir() || !info.IsDir() && !sameState(was, info) {
			return fmt.Errorf("%s: %w", name, ErrChanged)
		}
	}
	if len(now) != len(s) {
		return ErrChanged
	}
	return nil
}

// parents returns the directories up from the parent of a name, without the uppermost, the deepest first.
func parents(name string) (dirs []string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}

// unique sorts names, and drops those that come twice.
func unique(names []string) []string {
	sortNames(names)
	return slices.Compact(names)
}

// renameIfFree gives something a name that was free a moment ago.
func renameIfFree(root *os.Root, from, to string) error {
	if _, err := root.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(&fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}, err)
	}
	return root.Rename(from, to)
}
