package bundlefs_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// A value is found where it is, and one that is not there at its nearest parent, or at its document.
func TestLocator(t *testing.T) {
	fsys := fstest.MapFS{
		"a.yaml": {Data: []byte("kind: A\nspec:\n  list:\n  - x: 1\n---\nkind: B\nname: b\n")},
		"a.json": {Data: []byte("{\n  \"kind\": \"A\",\n  \"spec\": {\"x\": 1}\n}\n")},
	}
	l := bundlefs.NewLocator(fsys)
	for _, c := range []struct {
		at           bundlefs.Place
		line, column int
	}{
		{bundlefs.Place{File: "a.yaml", Path: []any{"spec", "list", 0, "x"}}, 4, 8},
		{bundlefs.Place{File: "a.yaml", Path: []any{"spec", "absent"}}, 3, 3},
		{bundlefs.Place{File: "a.yaml", Document: 1, Path: []any{"name"}}, 7, 7},
		{bundlefs.Place{File: "a.yaml", Document: 1, Line: 6, Path: []any{"absent"}}, 6, 0},
		{bundlefs.Place{File: "a.yaml", Document: 2, Line: 9, Path: []any{"name"}}, 9, 0},
		{bundlefs.Place{File: "a.json", Path: []any{"spec"}}, 3, 11},
		{bundlefs.Place{File: "absent", Line: 1, Path: []any{"a"}}, 1, 0},
		{bundlefs.Place{Line: 3, Path: []any{"a"}}, 3, 0},
		{bundlefs.Place{File: "a.yaml", Line: 3}, 3, 0},
	} {
		if line, column := l.Find(c.at); line != c.line || column != c.column {
			t.Errorf("%+v: %d:%d, want %d:%d", c.at, line, column, c.line, c.column)
		}
	}
}

// Looking for values in a large JSON document ends after a bounded number of bytes.
func TestLocatorIsBounded(t *testing.T) {
	text := `{"pad":"` + strings.Repeat("x", 3<<20) + "\",\n" + `"a":1}`
	l := bundlefs.NewLocator(fstest.MapFS{"a.json": {Data: []byte(text)}})
	at := bundlefs.Place{File: "a.json", Line: 1, Path: []any{"a"}}
	if line, _ := l.Find(at); line != 2 {
		t.Errorf("line %d", line)
	}
	for range 10 {
		l.Find(at)
	}
	if line, column := l.Find(at); line != 1 || column != 0 {
		t.Errorf("after many look-ups: %d:%d", line, column)
	}
}

func TestFieldPath(t *testing.T) {
	for field, want := range map[string][]any{
		"":                           nil,
		"spec":                       {"spec"},
		"spec.versions[0].name":      {"spec", "versions", 0, "name"},
		"metadata.annotations[a.b/]": {"metadata", "annotations", "a.b/"},
		"a[b":                        {"a"},
	} {
		if got := bundlefs.FieldPath(field); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", field, got)
		}
	}
}

// An error of decoding says what is wrong in the terms of the file, and where.
func TestTypeError(t *testing.T) {
	text := []byte(`{"spec":{"count":"many"}}`)
	var v struct {
		Spec struct {
			Count int `json:"count"`
		} `json:"spec"`
	}
	err := json.Unmarshal(text, &v)
	path, problem := bundlefs.TypeProblem(text, err)
	if !reflect.DeepEqual(path, []any{"spec", "count"}) || problem == "" || strings.Contains(problem, "Go") {
		t.Errorf("%v: %s", path, problem)
	}
	if got := bundlefs.TypeError(text, err).Error(); got != "spec.count "+problem {
		t.Errorf("%s", got)
	}
	if path, problem := bundlefs.TypeProblem(text, errors.New("other")); path != nil || problem != "other" {
		t.Errorf("%v: %s", path, problem)
	}
}

// Directories are opened, files and what is not there are not.
func TestOpenDir(t *testing.T) {
	dir := t.TempDir()
	root, err := bundlefs.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, filepath.Join(dir, "absent")} {
		if _, err := bundlefs.OpenDir(name); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The links of a mounted ConfigMap are no files of a bundle.
func TestEntries(t *testing.T) {
	fsys := fstest.MapFS{"d/..data": {}, "d/b": {}, "d/a": {}}
	all, err := bundlefs.Entries(fsys, "d")
	if err != nil || len(all) != 2 || all[0].Name() != "a" {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := bundlefs.Entries(fsys, "absent"); err == nil {
		t.Error("no directory: no error")
	}
	for text, want := range map[string]string{`{"kind":"Pod"}`: "Pod", `{"kind":1}`: "", "[]": "", "": ""} {
		if got := bundlefs.Kind([]byte(text)); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}
