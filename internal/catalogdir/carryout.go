package catalogdir

import (
	"context"
	"errors"
	"io/fs"
	"path"
)

// carryOut writes the files of an edit and puts them in place: all of them, or none.
func (d *Dir) carryOut(ctx context.Context, all []*fileEdit) (err error) {
	s, err := d.newStage()
	if err != nil {
		return err
	}
	root := d.root
	defer func() {
		if !s.keep {
			// After a success it is not needed, and the next edit removes it if that is not possible now.
			if rerr := removeStage(root, s.name); err != nil {
				err = errors.Join(err, rerr)
			}
		}
		if d.root != root {
			_ = root.Close() // it was only read
		}
	}()
	ws, err := s.fill(ctx, all)
	if err != nil {
		return err
	}
	d.step("written")
	if err := d.nothingChanged(all); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := d.newPlacement(s, ws)
	if one, ok, err := p.oneStep(); err != nil || ok {
		if err != nil {
			return err
		}
		return p.apply(ctx, one, false)
	}
	done, err := p.exchange(ctx)
	if done || err != nil {
		return err
	}
	return p.apply(ctx, p.all(), true)
}

// nothingChanged checks that the files that are to be changed are what was read, and that new ones have free names.
func (d *Dir) nothingChanged(all []*fileEdit) error {
	for _, e := range all {
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

// placement puts files in place that are ready in the stage.
type placement struct {
	dir     *Dir
	stage   *stage
	written []*written
	removed map[string]bool // files that go
	filled  map[string]bool // directories in which something is new, or below them
	empty   map[string]bool // what isEmptied has found
}

func (d *Dir) newPlacement(s *stage, ws []*written) *placement {
	p := &placement{dir: d, stage: s, written: ws, removed: map[string]bool{}, filled: map[string]bool{}, empty: map[string]bool{}}
	for _, w := range ws {
		if w.staged == "" {
			p.removed[w.edit.name] = true
			continue
		}
		for _, dir := range parents(w.edit.name) {
			p.filled[dir] = true
		}
	}
	return p
}

// move is one change of a name in the directory: something new gets it, or what has it goes, or both.
type move struct {
	name   string
	staged string      // what is new, in the stage; empty if there is nothing
	old    fs.FileInfo // what is there; nil if there is nothing
	new    fs.FileInfo
}

// all returns the moves of single files.
func (p *placement) all() []*move {
	var ms []*move
	for _, w := range p.written {
		m := &move{name: w.edit.name, staged: w.staged, new: w.info}
		if w.edit.file != nil {
			m.old = w.edit.file.info
		}
		ms = append(ms, m)
	}
	return ms
}

// oneStep returns the one move that does it all, if there is one: that of a file, of a new directory with all that is new,
// or of a directory of which nothing is left.
func (p *placement) oneStep() ([]*move, bool, error) {
	first := p.written[0]
	switch {
	case first.edit.file == nil:
		top, err := p.missing(path.Dir(first.edit.name))
		if err != nil {
			return nil, false, err
		}
		if top == "" {
			break
		}
		for _, w := range p.written {
			if !within(w.edit.name, top) {
				return nil, false, nil
			}
		}
		m, err := p.gather(top)
		return []*move{m}, err == nil, err
	case first.staged == "":
		top, err := p.emptied(path.Dir(first.edit.name))
		if err != nil {
			return nil, false, err
		}
		if top == "" {
			break
		}
		for _, w := range p.written {
			if w.staged != "" || !within(w.edit.name, top) {
				return nil, false, nil
			}
		}
		info, err := p.dir.root.Lstat(top)
		return []*move{{name: top, old: info}}, err == nil, err
	}
	return p.all(), len(p.written) == 1, nil
}

// missing returns the uppermost directory of those up from dir that is not there; empty if all are.
func (p *placement) missing(dir string) (string, error) {
	top := ""
	for ; dir != "."; dir = path.Dir(dir) {
		_, err := p.dir.root.Lstat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		top = dir
	}
	return top, nil
}

// emptied returns the uppermost directory of those up from dir in which nothing is left when the edit is done, empty if
// there is none. The directory of the catalog itself always stays.
func (p *placement) emptied(dir string) (string, error) {
	top := ""
	for ; dir != "."; dir = path.Dir(dir) {
		empty, err := p.isEmptied(dir)
		if err != nil || !empty {
			return top, err
		}
		top = dir
	}
	return top, nil
}

// isEmptied reports whether nothing is left in a directory when the edit is done. One that is empty before does not count.
func (p *placement) isEmptied(dir string) (bool, error) {
	if empty, ok := p.empty[dir]; ok {
		return empty, nil
	}
	entries, err := readDir(p.dir.root, dir)
	if err != nil {
		return false, err
	}
	empty := len(entries) > 0 && !p.filled[dir]
	for _, e := range entries {
		if !empty {
			break
		}
		name := path.Join(dir, e.Name())
		if empty = p.removed[name]; !empty && e.IsDir() {
			if empty, err = p.isEmptied(name); err != nil {
				return false, err
			}
		}
	}
	p.empty[dir] = empty
	return empty, nil
}

// gather makes a directory of all that is new, in the stage, to be moved as a whole.
func (p *placement) gather(top string) (*move, error) {
	root := p.dir.root
	m := &move{name: top, staged: p.stage.path("made")}
	dirs := map[string]bool{}
	for _, w := range p.written {
		to := path.Join(m.staged, w.edit.name[len(top):])
		if err := root.MkdirAll(path.Dir(to), 0o777); err != nil {
			return nil, err
		}
		if err := root.Rename(w.staged, to); err != nil {
			return nil, err
		}
		for dir := path.Dir(to); dir != p.stage.name; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		if err := p.dir.sync(dir); err != nil {
			return nil, err
		}
	}
	var err error
	m.new, err = root.Lstat(m.staged)
	return m, err
}

// sync makes the entries of a directory durable.
func (d *Dir) sync(name string) error { return syncName(d.root, name) }
