package manifests

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Limits of what is read. The real program has none; those of package bundle are the same.
const (
	maxFile    = 4 << 20
	maxTotal   = 256 << 20
	maxEntries = 10_000
	maxDepth   = 100
	maxObjects = 10_000
	// maxRendered limits the manifests: each deployment has all annotations of the ClusterServiceVersion, so that they
	// can be a thousand times as large as the bundle. Those of real bundles have some megabytes.
	maxRendered = 16 << 20
)

// limit is an error about a bundle that exceeds one of the limits.
func limit(format string, a ...any) error {
	return fmt.Errorf("%w: %s", fault.ErrLimit, fmt.Sprintf(format, a...))
}

// files reads files of a bundle within the limits.
type files struct {
	fsys    fs.FS
	total   int64
	entries int
}

// read reads a file. Errors of a missing file have the text that operator-controller's have, whatever kind of file
// system it is.
func (f *files) read(name string) (_ []byte, err error) {
	info, err := fs.Stat(f.fsys, name)
	if err != nil {
		return nil, missing("open", name, err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() { // opening a FIFO would wait for its writer
		return nil, fmt.Errorf("read %s: not a regular file", name)
	}
	file, err := f.fsys.Open(name)
	if err != nil {
		return nil, missing("open", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info.IsDir() {
		return nil, fmt.Errorf("read %s: is a directory", name)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if f.total += int64(len(data)); len(data) > maxFile || f.total > maxTotal {
		return nil, limit("%s has more than %d bytes, or the bundle more than %d", name, maxFile, maxTotal)
	}
	return data, nil
}

// missing gives an error of a file that is not there the text of an operating system's.
func missing(op, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &absent{fmt.Sprintf("%s %s: no such file or directory", op, name)}
	}
	return err
}

type absent struct{ text string }

func (e *absent) Error() string { return e.text }
func (e *absent) Unwrap() error { return fs.ErrNotExist }
