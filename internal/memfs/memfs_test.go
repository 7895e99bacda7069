package memfs

import (
	"errors"
	"io"
	"io/fs"
	"testing"
	"time"
)

// Files and directories describe themselves as the package io/fs wants it.
func TestInfo(t *testing.T) {
	file, dir := File("a", 3), Dir("d")
	file.Time = time.Unix(1, 0)
	if file.Name() != "a" || file.Size() != 3 || file.Mode() != 0o644 || file.IsDir() ||
		!file.ModTime().Equal(time.Unix(1, 0)) {
		t.Errorf("%+v", file)
	}
	if dir.Name() != "d" || !dir.IsDir() || dir.Mode() != fs.ModeDir|0o755 || dir.Sys() != nil {
		t.Errorf("%+v", dir)
	}
}

// An open directory gives its entries once, in portions of the wanted size.
func TestOpenDir(t *testing.T) {
	entries := []fs.DirEntry{fs.FileInfoToDirEntry(File("a", 1)), fs.FileInfoToDirEntry(File("b", 2)),
		fs.FileInfoToDirEntry(Dir("c"))}
	d := OpenDir(Dir("d"), entries)
	if info, err := d.Stat(); err != nil || info.Name() != "d" {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := d.Read(make([]byte, 1)); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("reading it as a file: %v", err)
	}
	for _, want := range []int{2, 1} {
		if got, err := d.ReadDir(2); err != nil || len(got) != want {
			t.Errorf("%v, %v", got, err)
		}
	}
	if got, err := d.ReadDir(2); err != io.EOF || len(got) != 0 {
		t.Errorf("at the end: %v, %v", got, err)
	}
	if got, err := d.ReadDir(-1); err != nil || len(got) != 0 {
		t.Errorf("all that are left: %v, %v", got, err)
	}
	if got, err := OpenDir(Dir("d"), entries).ReadDir(-1); err != nil || len(got) != 3 {
		t.Errorf("all: %v, %v", got, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
