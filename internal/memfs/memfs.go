// Package memfs has the parts that read-only file systems need which are not on a disk: what describes a file or a
// directory, and an open directory.
package memfs

import (
	"io"
	"io/fs"
	"slices"
	"time"
)

// Info describes a file or a directory. It is an [fs.FileInfo].
type Info struct {
	// Base is the last element of the name.
	Base string
	// Bytes is the size.
	Bytes int64
	// Kind is the mode with the type of the file.
	Kind fs.FileMode
	// Time is when it was changed last.
	Time time.Time
}

// File describes a regular file of a size in bytes that everybody may read.
func File(base string, bytes int64) Info { return Info{Base: base, Bytes: bytes, Kind: 0o644} }

// Dir describes a directory that everybody may read.
func Dir(base string) Info { return Info{Base: base, Kind: fs.ModeDir | 0o755} }

func (i Info) Name() string       { return i.Base }
func (i Info) Size() int64        { return i.Bytes }
func (i Info) Mode() fs.FileMode  { return i.Kind }
func (i Info) ModTime() time.Time { return i.Time }
func (i Info) IsDir() bool        { return i.Kind.IsDir() }
func (i Info) Sys() any           { return nil }

// OpenDir returns an open directory with some entries.
func OpenDir(info fs.FileInfo, entries []fs.DirEntry) fs.ReadDirFile { return &openDir{info, entries} }

type openDir struct {
	info fs.FileInfo
	rest []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: fs.ErrInvalid}
}

func (d *openDir) ReadDir(count int) ([]fs.DirEntry, error) {
	list := d.rest
	if count > 0 {
		if len(list) == 0 {
			return nil, io.EOF
		}
		list = list[:min(count, len(list))]
	}
	d.rest = d.rest[len(list):]
	return slices.Clone(list), nil
}
