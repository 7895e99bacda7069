package catalogdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// errNoExchange says that a directory cannot be exchanged for a changed copy: its files have to be put in place one by one.
var errNoExchange = errors.New("the directory cannot be exchanged")

// exchange makes a copy of the directory that holds all changes, of links to the files that stay, and exchanges the two in one
// step. It reports false if that is not possible here.
func (p *placement) exchange(ctx context.Context) (bool, error) {
	if p.dir.steps.byJournal || p.dir.steps.byRename {
		return false, nil
	}
	if dir := p.common(); dir != "." {
		done, err := p.exchangeBelow(ctx, dir)
		if done || err != nil {
			return done, err
		}
	}
	return p.exchangeAll(ctx)
}

// common is the deepest directory that holds all changes.
func (p *placement) common() string {
	dir := path.Dir(p.written[0].edit.name)
	for _, w := range p.written {
		for !within(w.edit.name, dir) {
			dir = path.Dir(dir)
		}
	}
	return dir
}

// exchangeBelow exchanges a directory below that of the catalog. The copy is in the stage.
func (p *placement) exchangeBelow(ctx context.Context, dir string) (bool, error) {
	d := p.dir
	if isWorkingDirectory(filepath.Join(d.path, filepath.FromSlash(dir))) {
		return false, nil
	}
	c := &copier{ctx: ctx, placement: p, root: d.root, from: dir, to: p.stage.path("tree"), staged: ".", inStage: true, base: dir}
	if err := d.root.Mkdir(c.to, 0o700); err != nil {
		return false, err
	}
	err := c.run()
	if errors.Is(err, errNoExchange) {
		// What was made of it must not be taken for files that were there.
		return false, d.root.RemoveAll(c.to)
	}
	return err == nil, err
}

// exchangeAll exchanges the directory of the catalog. The copy is beside it.
func (p *placement) exchangeAll(ctx context.Context) (done bool, err error) {
	d := p.dir
	parent, base := filepath.Split(d.path)
	if base == "" || isWorkingDirectory(d.path) {
		return false, nil
	}
	beside, err := atomicfs.NewDir(d.path)
	if err != nil {
		return false, nil // the directory above is not ours to write
	}
	defer func() {
		// It holds the old directory after a success, and is swept by the next edit if it cannot be removed now.
		if aerr := beside.Abort(); !done {
			err = errors.Join(err, aerr)
		}
	}()
	root, err := os.OpenRoot(parent)
	if err != nil {
		return false, nil
	}
	defer root.Close()
	c := &copier{ctx: ctx, placement: p, root: root, from: base, to: filepath.Base(beside.Path()), staged: base, base: "."}
	err = c.run()
	if errors.Is(err, errNoExchange) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// The lock is that of the directory that was: what is there now is opened when it is needed.
	_ = d.lock.Close() // it was only read
	d.root, d.lock = nil, nil
	return true, nil
}

// isWorkingDirectory reports whether this process is in a directory, or below it: it would find itself in the old one.
func isWorkingDirectory(dir string) bool {
	wd, err := os.Getwd()
	if err == nil {
		wd, err = filepath.EvalSymlinks(wd)
	}
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, wd)
	return err == nil && filepath.IsLocal(rel)
}

// copier makes a changed copy of a directory out of links, and exchanges the two.
type copier struct {
	ctx       context.Context
	placement *placement
	root      *os.Root // in which all paths are
	from, to  string
	staged    string // the directory of the catalog
	base      string // what from is below that
	inStage   bool

	before snapshot
	news   map[string][]*written // new files, by directory below from
}

func (c *copier) run() error {
	p := c.placement
	c.before, c.news = snapshot{}, map[string][]*written{}
	for _, w := range p.written {
		if w.staged != "" {
			dir := c.below(path.Dir(w.edit.name))
			c.news[dir] = append(c.news[dir], w)
		}
	}
	if err := c.directory("."); err != nil {
		return err
	}
	if err := c.newDirectories(); err != nil {
		return noExchange(err)
	}
	p.dir.step("copied")
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if err := exchange(c.root, c.to, c.from); err != nil {
		return noExchange(err)
	}
	p.dir.step("exchanged")
	err := c.before.check(c.root, c.to, p.stage.name)
	for _, dir := range [...]string{path.Dir(c.from), path.Dir(c.to)} {
		if err == nil {
			err = syncName(c.root, dir)
		}
	}
	if err != nil {
		return errors.Join(err, exchange(c.root, c.to, c.from))
	}
	return nil
}

// below returns a name relative to the directory that is copied.
func (c *copier) below(name string) string {
	switch c.base {
	case ".":
		return name
	case name:
		return "."
	}
	return strings.TrimPrefix(name, c.base+"/")
}

func noExchange(err error) error { return fmt.Errorf("%w: %w", errNoExchange, err) }

// directory copies one directory and those below. rel is relative to what is copied.
func (c *copier) directory(rel string) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	p := c.placement
	from, to := path.Join(c.from, rel), path.Join(c.to, rel)
	info, err := c.root.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o200 == 0 {
		return noExchange(errors.New("it is read-only, and so would be what is left of it"))
	}
	if strange, err := hasAttributes(c.root, from); strange || err != nil {
		return noExchange(errors.Join(err, errors.New("it has attributes")))
	}
	entries, err := readDir(c.root, from)
	if err != nil {
		return noExchange(err)
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		inCatalog := path.Join(c.base, name)
		if inCatalog == p.stage.name {
			continue
		}
		if c.inStage && e.Name() == declcfg.IgnoreFile {
			return noExchange(errors.New("its ignore file would say what is read in the stage"))
		}
		info, err := c.root.Lstat(path.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if c.before[name] = info; len(c.before) > maxSnapshot {
			return noExchange(errTooMany)
		}
		if info.IsDir() {
			if empty, err := p.isEmptied(inCatalog); err != nil || empty {
				if err == nil {
					err = c.before.add(c.root, c.from, name)
				}
				if err != nil {
					return err
				}
				continue
			}
			if err := c.root.Mkdir(path.Join(to, e.Name()), 0o700); err != nil {
				return noExchange(err)
			}
			if err := c.directory(name); err != nil {
				return err
			}
			continue
		}
		if p.removed[inCatalog] || slices.ContainsFunc(c.news[rel], func(w *written) bool { return w.edit.name == inCatalog }) {
			continue
		}
		if err := c.root.Link(path.Join(from, e.Name()), path.Join(to, e.Name())); err != nil {
			return noExchange(err)
		}
	}
	for _, w := range c.news[rel] {
		if err := c.root.Link(path.Join(c.staged, w.staged), path.Join(to, path.Base(w.edit.name))); err != nil {
			return noExchange(err)
		}
	}
	changed := len(c.news[rel]) > 0 || p.changes(path.Join(c.base, rel))
	delete(c.news, rel)
	if err := likeDirectory(c.root, to, info, changed); err != nil {
		return noExchange(err)
	}
	return syncName(c.root, to)
}

// newDirectories makes the directories that are new, with their files.
func (c *copier) newDirectories() error {
	for rel, ws := range c.news {
		to := path.Join(c.to, rel)
		if err := c.root.MkdirAll(to, 0o777); err != nil {
			return err
		}
		for _, w := range ws {
			if err := c.root.Link(path.Join(c.staged, w.staged), path.Join(to, path.Base(w.edit.name))); err != nil {
				return err
			}
		}
		for dir := to; dir != path.Dir(c.to); dir = path.Dir(dir) {
			if err := syncName(c.root, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// changes reports whether files go from a directory, or directories in it.
func (p *placement) changes(dir string) bool {
	for name := range p.removed {
		if path.Dir(name) == dir {
			return true
		}
	}
	for name, empty := range p.empty {
		if empty && path.Dir(name) == dir {
			return true
		}
	}
	return false
}

// likeDirectory gives a copy of a directory the mode, owner and, if nothing is changed in it, the times of the original.
func likeDirectory(root *os.Root, name string, info fs.FileInfo, changed bool) error {
	if uid, gid, ok := atomicfs.Owner(info); ok {
		have, err := root.Lstat(name)
		if err != nil {
			return err
		}
		if u, g, _ := atomicfs.Owner(have); u != uid || g != gid {
			if err := root.Lchown(name, uid, gid); err != nil {
				return err
			}
		}
	}
	if err := root.Chmod(name, info.Mode()); err != nil {
		return err
	}
	if changed {
		return nil
	}
	return root.Chtimes(name, info.ModTime(), info.ModTime())
}

// syncName makes the entries of a directory durable.
func syncName(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}
