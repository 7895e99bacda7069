package bundlecheck

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
)

// read reads a bundle as far as it can be read.
func read(fsys fs.FS, o bundle.ReadOptions) (*bundle.Bundle, error) {
	b, err := bundle.Read(context.Background(), fsys, o)
	var problems *bundle.ReadError
	if errors.As(err, &problems) {
		err = nil
	}
	return b, err
}

func load(t testing.TB, fsys fs.FS) *bundle.Bundle {
	t.Helper()
	b, err := read(fsys, bundle.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
