package bundlefs_test

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/internal/bundlefs"
)

func TestLayoutIsAFileSystem(t *testing.T) {
	l := bundlefs.Layout{
		Dirs: map[string]fs.FS{
			"manifests": fstest.MapFS{"a.yaml": {Data: []byte("a")}, "sub/b.yaml": {Data: []byte("b")}},
			"metadata": fstest.MapFS{"annotations.yaml": {Data: []byte("old")},
				"dependencies.yaml": {Data: []byte("d")}},
			"empty": nil,
		},
		Files: map[string][]byte{"metadata/annotations.yaml": []byte("new"), "empty/x": []byte("x")},
	}
	if err := fstest.TestFS(l, "manifests/a.yaml", "manifests/sub/b.yaml", "metadata/annotations.yaml",
		"metadata/dependencies.yaml", "empty/x"); err != nil {
		t.Error(err)
	}
	if text, err := fs.ReadFile(l, "metadata/annotations.yaml"); err != nil || string(text) != "new" {
		t.Errorf("got %q, %v", text, err)
	}
	for _, name := range []string{"manifests/nosuch", "nosuch", "nosuch/a", "empty/y", "empty/y/z"} {
		var p *fs.PathError
		if _, err := l.Open(name); !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &p) || p.Path != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := fstest.TestFS(bundlefs.Layout{}); err != nil {
		t.Error(err)
	}
}

func TestAnnotations(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"annotations:\n  a: b\n  num: 1.10\n  t: true\n  z:\n": {"a": "b", "num": "1.10", "t": "true", "z": ""},
		"annotations:\n":                 nil,
		"":                               nil,
		"# nothing\n":                    nil,
		`{"annotations":{"a":"b"}}`:      {"a": "b"},
		"annotations: {a: x}\n---\nb: 1": {"a": "x"},
	} {
		if got, err := bundlefs.Annotations([]byte(text)); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"annotations: [a]", "annotations: {a: [b]}", "annotations: {a: {b: c}}", "\t",
		"\xff\xfea"} {
		if got, err := bundlefs.Annotations([]byte(text)); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestReadFileRefuses(t *testing.T) {
	fsys := fstest.MapFS{"big": {Data: make([]byte, bundlefs.MaxFile+1)}, "dev": {Mode: fs.ModeDevice}, "dir/x": {}}
	if _, err := bundlefs.ReadFile(fsys, "big"); !errors.Is(err, bundlefs.ErrLimit) {
		t.Errorf("big: %v", err)
	}
	for name, want := range map[string]string{"dev": "not a regular file", "dir": "is a directory"} {
		if _, err := bundlefs.ReadFile(fsys, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzAnnotations(f *testing.F) {
	f.Add([]byte("annotations:\n  a: b\n  num: 1.10\n"))
	f.Add([]byte(`{"annotations":{"a":[1]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := bundlefs.Annotations(text); err != nil && got != nil {
			t.Errorf("%q with %v", got, err)
		}
	})
}
