// Package bundlefs reads the files of a bundle within limits. It does not interpret manifests.
package bundlefs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Limits of a bundle.
const (
	MaxFile  = 4 << 20   // bytes of one file
	MaxTotal = 256 << 20 // bytes of all files
	MaxFiles = 10_000    // files in one directory
	MaxDepth = 32        // nesting of directories
)

// ErrLimit is the class of errors about a bundle that exceeds a limit.
var ErrLimit = fault.ErrLimit

// OpenDir opens a directory; symbolic links cannot lead out of it. Close it after use.
func OpenDir(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a directory", dir)
	}
	return os.OpenRoot(dir)
}

// ReadFile reads a regular file of at most [MaxFile] bytes.
func ReadFile(fsys fs.FS, name string) (_ []byte, err error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("read %s: is a directory", name)
	}
	if !info.Mode().IsRegular() { // opening a FIFO would wait for its writer
		return nil, fmt.Errorf("read %s: is not a regular file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", name, ErrLimit, MaxFile)
	}
	return data, nil
}

// Entries returns the entries of a directory sorted by name, without the internal ones of a mounted ConfigMap
// ("..data").
func Entries(fsys fs.FS, dir string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	if len(all) > MaxFiles {
		return nil, fmt.Errorf("%s: %w: more than %d files", dir, ErrLimit, MaxFiles)
	}
	kept := all[:0]
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), "..") {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// FirstDocument returns the first document of a file as canonical JSON; nil if it has none. opm reads no further
// documents.
func FirstDocument(data []byte) ([]byte, error) {
	doc, err := canon.NewSplitter(bytes.NewReader(data), canon.Limits{MaxDocument: MaxFile}).Next()
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c canon.Converter
	return c.Append(nil, doc)
}

// Kind returns the kind of an object; empty if the document is not an object.
func Kind(doc []byte) string {
	var object struct {
		Kind string `json:"kind"`
	}
	if len(doc) == 0 || json.Unmarshal(doc, &object) != nil {
		return ""
	}
	return object.Kind
}

// Annotations parses an annotations.yaml. Numbers and booleans are read as strings.
func Annotations(text []byte) (map[string]string, error) {
	doc, err := FirstDocument(text)
	if err != nil || doc == nil {
		return nil, err
	}
	var file struct {
		Annotations map[string]json.RawMessage `json:"annotations"`
	}
	if err := json.Unmarshal(doc, &file); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(file.Annotations))
	for key, raw := range file.Annotations {
		switch raw[0] {
		case '"':
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, err
			}
			out[key] = s
		case '{', '[':
			return nil, fmt.Errorf("annotation %q is not a string", key)
		case 'n':
			out[key] = ""
		default:
			out[key] = string(raw)
		}
	}
	return out, nil
}
