package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/migrate"
)

// recordVersion is that of the records' form.
const recordVersion = 1

// maxRecord is the longest record that is read, in bytes. The report of a large index has some megabytes.
const maxRecord = 256 << 20

// Record is the account of one line: what its outputs hold, and how the last attempt ended. Its JSON is stable: fields are
// added, and never renamed or removed.
type Record struct {
	Version int    `json:"version"`
	State   State  `json:"state"`
	Source  string `json:"source"`
	// Outputs are the texts of the outputs.
	Outputs []string `json:"outputs"`
	// Error is why the last attempt failed.
	Error *Failure `json:"error,omitempty"`
	// Written is what the outputs hold, or will hold as soon as they have their names; absent if nothing was ever written.
	Written *Written `json:"written,omitempty"`
}

// State says how far a line is.
type State string

// The states of lines.
const (
	// Done says that the outputs are complete.
	Done State = "done"
	// Incomplete says that they are, but for broken packages that were left out.
	Incomplete State = "incomplete"
	// Writing is the state of a record while the outputs get their names; a killed run leaves it.
	Writing State = "writing"
	// Failed says that the last attempt failed. The outputs are as they were before it.
	Failed State = "failed"
	// NotBegun is the state of a line that a run did not come to. No record has it.
	NotBegun State = "not begun"
)

// Failure is why a line failed. Class is the number that errors of the command have.
type Failure struct {
	Class   int    `json:"class"`
	Message string `json:"message"`
}

// Written is what the outputs of a line hold.
type Written struct {
	// Input, Settings and Tool are what it was made from, how, and by which release.
	Input    Input  `json:"input"`
	Settings string `json:"settings"`
	Tool     string `json:"tool"`
	// Complete says that the outputs have their names.
	Complete bool `json:"complete"`
	// Directory is the content of the output directory, and Image the digest of the image.
	Directory *Tree  `json:"directory,omitempty"`
	Image     string `json:"image,omitempty"`
	// Before is the content of the directory that is being replaced, until it is.
	Before *Tree `json:"before,omitempty"`
	// Report is the account of the migration.
	Report *migrate.Report `json:"report"`
}

// incomplete reports whether packages were left out.
func (w *Written) incomplete() bool {
	return w.Report != nil && slices.ContainsFunc(w.Report.Packages, func(p migrate.PackageReport) bool { return p.Quarantined != "" })
}

// recordName is the name of a line's record: it depends on the line's outputs alone, so that lines can be added to a list.
func recordName(l *Line) string {
	outputs := l.Outputs()
	name := outputs[0]
	if l.Directory == "" && len(l.Names) > 0 {
		name = l.Names[0]
	}
	return strings.TrimSuffix(nameOf(name), "-"+sumOf(name)) + "-" + sumOf(strings.Join(outputs, "\x00")) + ".json"
}

// readRecord reads a record; nil if there is none. One that cannot be understood is an error: what it is about might be
// somebody's only copy.
func readRecord(path string, l *Line) (*Record, error) {
	bad := func(why string) error {
		return fmt.Errorf("the report %q is not one of this line: %s; remove it if the outputs are not needed", path, why)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a FIFO would wait for its writer
		return nil, bad("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxRecord {
		return nil, bad("too long")
	}
	r := &Record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, bad(err.Error())
	}
	if r.Version != recordVersion {
		return nil, bad(fmt.Sprintf("its version is %d", r.Version))
	}
	if strings.Join(r.Outputs, "\x00") != strings.Join(l.Outputs(), "\x00") {
		return nil, bad("it has other outputs")
	}
	return r, nil
}

// write puts the record on the disk, in place of the older one.
func (r *Record) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := atomicfs.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// sweep removes the beginnings of records that a killed run has left. A record that is not written again would keep them.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, _, unfinished := strings.Cut(strings.TrimPrefix(e.Name(), "."), ".bindery-")
		if !unfinished || !strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(name, ".json") {
			continue
		}
		if err := atomicfs.Sweep(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
