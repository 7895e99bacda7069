package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/internal/canon"
)

// What a bundle may cost to be looked at.
const (
	maxFile  = 4 << 20 // bytes of one manifest
	maxFiles = 10_000
	maxDepth = 32
	maxTotal = 256 << 20
)

// ErrLimit is the class of errors about a bundle that is larger than it may be.
var ErrLimit = errors.New("limit exceeded")

// readFile reads a regular file of a bundle.
func readFile(fsys fs.FS, name string) (_ []byte, err error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a FIFO would wait for its writer
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%q: %w: more than %d bytes", name, ErrLimit, maxFile)
	}
	return data, nil
}

// firstDocument is the first document of a file as JSON, nil if it has none. Only it counts for opm.
func firstDocument(data []byte) ([]byte, error) {
	doc, err := canon.NewSplitter(strings.NewReader(string(data)), canon.Limits{MaxDocument: maxFile}).Next()
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c canon.Converter
	return c.Append(nil, doc)
}

// csv is what is read of a ClusterServiceVersion, and of other objects to tell that they are none.
type csv struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Replaces string   `json:"replaces"`
		Skips    []string `json:"skips"`
	} `json:"spec"`
}

// kindCSV is the kind of a ClusterServiceVersion.
const kindCSV = "ClusterServiceVersion"

// findCSV finds the ClusterServiceVersion among the files of a directory, the first by name; false if there is none.
func findCSV(fsys fs.FS, dir string) (csv, bool, error) {
	names, err := fileNames(fsys, dir)
	if err != nil {
		return csv{}, false, err
	}
	for _, name := range names {
		data, err := readFile(fsys, path.Join(dir, name))
		if err != nil {
			return csv{}, false, err
		}
		doc, err := firstDocument(data)
		if err != nil || doc == nil || kindOf(doc) != kindCSV {
			continue // files that are no objects may lie beside the manifests
		}
		var found csv
		if err := json.Unmarshal(doc, &found); err != nil {
			return csv{}, false, fmt.Errorf("%s: %w", path.Join(dir, name), err)
		}
		return found, true, nil
	}
	return csv{}, false, nil
}

// kindOf is the kind of an object, empty if the document is none.
func kindOf(doc []byte) string {
	var object struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(doc, &object) != nil {
		return ""
	}
	return object.Kind
}

// fileNames are the names of the files of a directory, sorted, without what a mounted ConfigMap has for itself ("..data").
func fileNames(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), "..") {
			continue
		}
		names = append(names, e.Name())
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("%q: %w: more than %d files", dir, ErrLimit, maxFiles)
	}
	return names, nil
}
