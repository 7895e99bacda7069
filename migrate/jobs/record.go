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
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/migrate"
)

// recordVersion is the version of the records' format.
const recordVersion = 1

// maxRecord is the maximum size in bytes of a record, when it is written and when it is read. The report of a large
// index has some megabytes.
const maxRecord = 256 << 20

// Record is the state of one line: the content of its outputs and the result of the last attempt. Its JSON form is
// stable: fields are added, and never renamed or removed.
type Record struct {
	Version int    `json:"version"`
	State   State  `json:"state"`
	Source  string `json:"source"`
	// Outputs are the destinations as they are written in the list.
	Outputs []string `json:"outputs"`
	// Error is the failure of the last attempt.
	Error *Failure `json:"error,omitempty"`
	// Written is the content of the outputs, or the content that they get when they are renamed; absent if nothing was
	// ever written.
	Written *Written `json:"written,omitempty"`
}

// State is the progress of a line.
type State string

// The states of lines.
const (
	// Done means that the outputs are complete.
	Done State = "done"
	// Incomplete means that the outputs are complete except for invalid packages that were left out.
	Incomplete State = "incomplete"
	// Writing is the state of a record while the outputs are renamed; a killed run leaves it.
	Writing State = "writing"
	// Failed means that the last attempt failed. The outputs are as before it.
	Failed State = "failed"
	// NotBegun is the state of a line that a run did not reach. No record has it.
	NotBegun State = "not begun"
)

// Failure is the error of a line. Class is the number of the command's error class.
type Failure struct {
	Class   int    `json:"class"`
	Message string `json:"message"`
}

// Written is the content of a line's outputs.
type Written struct {
	// Input, Settings and Tool are the source, the settings and the release that produced it.
	Input    Input  `json:"input"`
	Settings string `json:"settings"`
	Tool     string `json:"tool"`
	// Complete reports that the outputs have their final names.
	Complete bool `json:"complete"`
	// Directory is the content of the output directory, Image the digest of the image.
	Directory *Tree  `json:"directory,omitempty"`
	Image     string `json:"image,omitempty"`
	// Before is the content of the directory that is being replaced; nil afterwards.
	Before *Tree `json:"before,omitempty"`
	// Report is the report of the migration.
	Report *migrate.Report `json:"report"`
}

// incomplete reports whether packages were left out.
func (w *Written) incomplete() bool {
	return w.Report != nil && slices.ContainsFunc(w.Report.Packages,
		func(p migrate.PackageReport) bool { return p.Quarantined != "" })
}

// recordName is the file name of a line's record: it depends on the line's outputs only, so that lines can be added to
// a list.
func recordName(l *Line) string {
	outputs := l.Outputs()
	name, isPath := outputs[0], l.Directory != ""
	if l.Directory == "" && len(l.Names) > 0 {
		name, isPath = l.Names[0], true
	}
	return strings.TrimSuffix(nameOf(name, isPath), "-"+sumOf(name)) + "-" + sumOf(strings.Join(outputs, "\x00")) + ".json"
}

// readRecord reads a record; nil if there is none. An unreadable one is an error: it may describe the only copy of some
// data.
func readRecord(path string, l *Line) (*Record, error) {
	bad := func(why string) error {
		return fmt.Errorf("the report %q is not one of this line: %s; remove it if the outputs are not needed", path,
			why)
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

// write replaces the record on disk.
func (r *Record) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if text = append(redact.JSON(text), '\n'); len(text) > maxRecord {
		return fmt.Errorf("write the report: %s: %d bytes, and one that is read has at most %d", path, len(text),
			maxRecord)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := atomicfs.WriteFile(path, text, 0o666); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// sweep removes temporary files of records from killed runs, including those of records that are not written again.
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
