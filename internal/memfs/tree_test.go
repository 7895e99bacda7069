package memfs

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// A file system of names has their directories, and opens the files when they are read.
func TestNew(t *testing.T) {
	texts := map[string]string{"a": "text", "a.b": "", "dir/sub/x": "more", "dir/y": "y"}
	files := map[string]Info{"dir/broken": File("broken", 1)}
	for name, text := range texts {
		files[name] = File(name[strings.LastIndexByte(name, '/')+1:], int64(len(text)))
	}
	broken := errors.New("broken")
	open := func(f Info) (io.ReadCloser, error) {
		for name, text := range texts {
			if strings.HasSuffix("/"+name, "/"+f.Name()) {
				return io.NopCloser(strings.NewReader(text)), nil
			}
		}
		return nil, broken
	}
	fsys := New(files, Dir, open)
	for name, want := range map[string]error{"dir/broken": broken, "none": fs.ErrNotExist, "a/b": fs.ErrNotExist, "../a": fs.ErrInvalid, "": fs.ErrInvalid} {
		if _, err := fsys.Open(name); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	delete(files, "dir/broken")
	if err := fstest.TestFS(New(files, Dir, open), "a", "a.b", "dir/sub/x", "dir/y"); err != nil {
		t.Error(err)
	}
	if err := fstest.TestFS(New(map[string]Info{}, Dir, open)); err != nil {
		t.Error(err)
	}
}
