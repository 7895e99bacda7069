package build

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"github.com/operator-bindery/bindery/layers"
)

// aside keeps the contents of files that were made in memory in one temporary file until they are written into their layer:
// the caches of all packages that share a layer can be larger than memory should be.
type aside struct {
	f    *os.File
	size int64
	left atomic.Int64 // files that have not been read
}

func newAside(dir string) (*aside, error) {
	f, err := os.CreateTemp(dir, "caches-")
	if err != nil {
		return nil, err
	}
	// Systems that cannot remove an open file do so with the directory.
	_ = os.Remove(f.Name())
	return &aside{f: f}, nil
}

// take moves the contents of files, and returns the entries that have them from here. All must have been moved before the
// first is opened, and each can be opened once.
func (a *aside) take(entries []layers.Entry) ([]layers.Entry, error) {
	out := make([]layers.Entry, len(entries))
	for i, e := range entries {
		if e.Kind == layers.KindFile {
			at := a.size
			if err := a.write(e); err != nil {
				return nil, err
			}
			n := e.Size
			e.Open = func() (io.ReadCloser, error) { return &asideFile{io.NewSectionReader(a.f, at, n), a}, nil }
			a.left.Add(1)
		}
		out[i] = e
	}
	return out, nil
}

func (a *aside) write(e layers.Entry) (err error) {
	r, err := e.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	n, err := io.Copy(a.f, r)
	a.size += n
	if err == nil && n != e.Size {
		err = layers.ErrChanged
	}
	return err
}

// asideFile is one of the files.
type asideFile struct {
	*io.SectionReader
	of *aside
}

// Close ends reading. With the last of the files the temporary one is closed; if the layer fails before that, the garbage
// collector does so.
func (f *asideFile) Close() error {
	if f.of.left.Add(-1) > 0 {
		return nil
	}
	return f.of.f.Close()
}
