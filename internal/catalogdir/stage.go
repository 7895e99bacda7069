package catalogdir

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// stagePrefix begins the name of the directory in which new files are written. It is in the catalog directory, for it must be
// on its file system, and the directory above may not be or may not be ours. Its ignore file keeps every reader of catalogs
// from looking into it.
const (
	stagePrefix = ".bindery-edit-"
	stageIgnore = "# What is here belongs to an edit of the catalog. If that was interrupted, the next one clears it away.\n*\n"
)

// stage is the directory in which the files of one edit are written.
type stage struct {
	dir  *Dir
	name string
	keep bool // the next edit has something to do with it
}

func (s *stage) path(name string) string { return path.Join(s.name, name) }

// newStage makes the directory.
func (d *Dir) newStage() (*stage, error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails, by its contract
	s := &stage{dir: d, name: stagePrefix + hex.EncodeToString(random[:])}
	if err := d.root.Mkdir(s.name, 0o755); err != nil {
		return nil, err
	}
	d.step("stage")
	if err := s.write(declcfg.IgnoreFile, []byte(stageIgnore)); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// write writes a file of ours, and brings it to the disk.
func (s *stage) write(name string, data []byte) error {
	f, err := s.dir.root.OpenFile(s.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// remove removes the directory. What it holds is invisible as long as its ignore file is there, which therefore goes last.
func (s *stage) remove() error { return removeStage(s.dir.root, s.name) }

func removeStage(root *os.Root, name string) error {
	entries, err := readDir(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != declcfg.IgnoreFile {
			errs = append(errs, root.RemoveAll(path.Join(name, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return root.RemoveAll(name)
}

// readDir lists a directory, in the order of names.
func readDir(root *os.Root, name string) ([]fs.DirEntry, error) { return fs.ReadDir(root.FS(), name) }

// readSmall reads a regular file that this package has written, and that is therefore not large.
func readSmall(root *os.Root, name string) ([]byte, error) {
	const most = 64 << 20
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a file that an edit makes")}
	}
	return root.ReadFile(name)
}

// written is a file of an edit that is ready to be put in place.
type written struct {
	edit   *fileEdit
	staged string      // path of the new file; empty if the file goes
	info   fs.FileInfo // of the new file
}

// fill writes the new files of an edit, and brings them to the disk.
func (s *stage) fill(ctx context.Context, all []*fileEdit) ([]*written, error) {
	var ws []*written
	for i, e := range all {
		w := &written{edit: e}
		ws = append(ws, w)
		if e.empty() {
			continue
		}
		w.staged = s.path(fmt.Sprintf("new-%d", i))
		if err := s.fillOne(ctx, w); err != nil {
			return nil, err
		}
		s.dir.step("write")
	}
	return ws, nil
}

func (s *stage) fillOne(ctx context.Context, w *written) (err error) {
	d, e := s.dir, w.edit
	var from *documentReader
	if e.file != nil {
		if from, err = d.openDocuments(e.file); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, from.Close()) }()
	}
	form, err := d.formFor(e)
	if err != nil {
		return err
	}
	out, err := d.root.OpenFile(w.staged, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	spans, err := rewrite(ctx, out, e, from, form, d.options.Limits)
	if err != nil {
		return err
	}
	if _, err := out.Seek(0, 0); err != nil {
		return err
	}
	if err := verify(out, spans, d.options.Limits); err != nil {
		return fmt.Errorf("%s cannot be edited in place: %w", e.name, err)
	}
	if e.file != nil {
		if err := atomicfs.KeepOwner(out, e.file.info); err != nil {
			return err
		}
		if err := out.Chmod(e.file.info.Mode()); err != nil {
			return err
		}
	}
	if w.info, err = out.Stat(); err != nil {
		return err
	}
	if limit := maxFileSize(d.options.Limits); w.info.Size() > limit {
		return fmt.Errorf("%s would have %d bytes: %w (limit %d)", e.name, w.info.Size(), declcfg.ErrLimit, limit)
	}
	return out.Sync()
}

func maxFileSize(l declcfg.Limits) int64 {
	if l.MaxFileSize <= 0 {
		return 1 << 30
	}
	return l.MaxFileSize
}

// formFor is the form of the blobs of a new file.
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

// sweepStages clears away what killed edits have left in the directory.
func (d *Dir) sweepStages() error {
	names, err := d.stages()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.undoInterrupted(name); err != nil {
			return fmt.Errorf("%s: an edit of the catalog was interrupted, and what it left cannot be cleared away: %w", path.Join(d.name, name), err)
		}
		if err := removeStage(d.root, name); err != nil {
			return err
		}
	}
	return nil
}

// stages lists the directories that killed edits have left.
func (d *Dir) stages() ([]string, error) {
	entries, err := readDir(d.root, ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		random, ours := strings.CutPrefix(e.Name(), stagePrefix)
		if _, err := hex.DecodeString(random); ours && err == nil && len(random) == 16 && e.IsDir() && d.isStage(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// isStage reports whether a directory is what [Dir.newStage] makes, or the beginning of it, and not another program's.
func (d *Dir) isStage(name string) bool {
	data, err := readSmall(d.root, path.Join(name, declcfg.IgnoreFile))
	if err == nil && string(data) == stageIgnore {
		return true
	}
	entries, listErr := readDir(d.root, name)
	if listErr != nil || err == nil && !strings.HasPrefix(stageIgnore, string(data)) {
		return false
	}
	return len(entries) == 0 || err == nil && len(entries) == 1
}

// checkFinished returns an error if an edit was killed while it put its files in place one by one: what is there is neither
// the old catalog nor the new one.
func (d *Dir) checkFinished() error {
	names, err := d.stages()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := d.root.Lstat(path.Join(name, journalName)); err == nil {
			return fmt.Errorf("%s: an edit of the catalog was interrupted; the next edit that writes undoes it", path.Join(d.name, name))
		}
	}
	return nil
}
