package filetx

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// Prefix is the prefix of the names of staging directories.
const Prefix = ".bindery-edit-"

// The ignore file of a staging directory.
const (
	ignoreFile = ".indexignore"
	ignoreText = "# What is here belongs to an edit of the catalog. " +
		"If that was interrupted, the next one clears it away.\n*\n"
)

// maxJournal is the maximum size in bytes of a journal that is read.
const maxJournal = 64 << 20

// awaitLimit is how long [Await] waits for a running commit, which takes milliseconds.
const awaitLimit = 10 * time.Second

// Recover rolls back transactions that killed processes did not commit and removes their staging directories. If
// another program changed a file since, the error is [ErrChanged], and the staging directory stays with the old files.
func Recover(root *os.Root) error {
	stages, err := stages(root)
	if err != nil {
		return err
	}
	for _, stage := range stages {
		if err := recoverStage(root, stage); err != nil {
			return fmt.Errorf("%s: an edit of the catalog was interrupted, and what it left cannot be cleared away: %w",
				stage, err)
		}
	}
	return nil
}

func recoverStage(root *os.Root, stage string) error {
	if j, err := readJournal(root, path.Join(stage, committedFile)); err == nil {
		_ = j.removeEmptied(root) // an empty directory does not change the catalog
		return removeStage(root, stage)
	}
	j, err := readJournal(root, path.Join(stage, journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return removeStage(root, stage)
	}
	if err != nil {
		return err
	}
	if err := j.undo(root, stage); err != nil {
		return err
	}
	for _, dir := range j.dirs() {
		if err := syncDir(root, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return removeStage(root, stage)
}

// Check returns an error if a commit was interrupted: until [Recover], some files are old and others new.
func Check(root *os.Root) error {
	stage, err := pending(root)
	if err == nil && stage != "" {
		err = fmt.Errorf("%s: an edit of the catalog was interrupted; the next edit that writes undoes it", stage)
	}
	return err
}

// pending returns the staging directory with a journal; empty if there is none.
func pending(root *os.Root) (string, error) {
	stages, err := stages(root)
	for _, stage := range stages {
		if _, err := root.Lstat(path.Join(stage, journalFile)); err == nil {
			return stage, nil
		}
	}
	return "", err
}

// Await is for readers, which hold no lock: it waits for a running commit, and returns the error of [Check] if the
// commit's process was killed. It does not roll back, because readers change nothing. A directory that it cannot read
// is not an error here: the reader will report it.
func Await(root *os.Root) error {
	for end := time.Now().Add(awaitLimit); ; time.Sleep(filelock.Poll) {
		if stage, err := pending(root); err != nil || stage == "" {
			return nil
		}
		running, err := isLocked(root)
		if err != nil {
			return err
		}
		if !running || time.Now().After(end) {
			return Check(root) // the commit may have ended meanwhile
		}
	}
}

// isLocked reports whether another process may hold the lock of the directory.
func isLocked(root *os.Root) (bool, error) {
	dir, err := root.Open(".")
	if err != nil {
		return false, err
	}
	held, err := filelock.Try(dir)
	if errors.Is(err, filelock.ErrNoLocks) {
		err = nil
	}
	return !held, errors.Join(err, dir.Close())
}

// stages lists the staging directories.
func stages(root *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		random, ours := strings.CutPrefix(e.Name(), Prefix)
		if _, err := hex.DecodeString(random); err != nil || len(random) != 16 {
			continue
		}
		if ours && e.IsDir() && isStage(root, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// isStage reports whether a directory was created by [Begin] and not by another program. It may be incomplete.
func isStage(root *os.Root, name string) bool {
	data, err := readSmall(root, path.Join(name, ignoreFile), int64(len(ignoreText)))
	if err == nil && string(data) == ignoreText {
		return true
	}
	entries, listErr := fs.ReadDir(root.FS(), name)
	if listErr != nil || err == nil && !strings.HasPrefix(ignoreText, string(data)) {
		return false
	}
	return len(entries) == 0 || err == nil && len(entries) == 1
}

func readJournal(root *os.Root, name string) (*journal, error) {
	data, err := readSmall(root, name, maxJournal)
	if err != nil {
		return nil, err
	}
	j := &journal{}
	if err := json.Unmarshal(data, j); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return j, nil
}

// readSmall reads a regular file of at most most bytes.
func readSmall(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a file that an edit makes")}
	}
	return root.ReadFile(name)
}
