package medium

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
)

// pending is what a directory has once a commit has ended: the segments of archives that stay, and new ones behind
// them.
type pending struct {
	Kept     []string  `json:"kept,omitempty"`
	Segments []Segment `json:"segments"`
}

// commit gives the segments their names. The list of them, which is written first, tells readers and the next run that
// this has begun.
func commit(root *os.Root, dir string, p pending) (removed []string, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	if len(text) > maxJournal {
		return nil, fmt.Errorf("%w: the list of %d segments has %d bytes (limit %d): make them larger", fault.ErrLimit,
			len(p.Segments), len(text), maxJournal)
	}
	if err := writeSync(root, commitFile, text); err != nil {
		return nil, err
	}
	if err := atomicfs.SyncDir(dir); err != nil {
		return nil, err
	}
	return rollForward(root, dir, p)
}

// rollForward gives those segments their names that have none yet, and removes others.
func rollForward(root *os.Root, dir string, p pending) (removed []string, err error) {
	removed, err = segmentNames(root)
	if err != nil {
		return nil, err
	}
	removed = slices.DeleteFunc(removed, func(name string) bool { return slices.Contains(p.Kept, name) })
	for i, s := range p.Segments {
		err := root.Rename(partial(i+1), s.Name)
		if errors.Is(err, fs.ErrNotExist) {
			_, err = root.Lstat(s.Name) // the segment has its name already
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range removed {
		if !slices.ContainsFunc(p.Segments, func(s Segment) bool { return s.Name == name }) {
			if err := root.Remove(name); err != nil {
				return nil, err
			}
		}
	}
	if err := atomicfs.SyncDir(dir); err != nil {
		return nil, err
	}
	// Where open files cannot be removed, the journal may stay: it describes no unfinished segments any more.
	_ = root.Remove(journalFile)
	return removed, root.Remove(commitFile)
}

// writeSync writes a file under a temporary name and renames it.
func writeSync(root *os.Root, name string, text []byte) error {
	if err := root.Remove(name + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a run that was killed
		return err
	}
	f, err := root.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, root.Remove(name+".new"))
	}
	return root.Rename(name+".new", name)
}
