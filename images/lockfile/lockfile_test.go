package lockfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/internal/fault"
)

func TestLockRemembersAcrossRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "bindery.lock")
	a, b := digest.FromString("a"), digest.FromString("b")
	l, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Record("quay.io/z:v1", b), l.Record("docker://quay.io/a:v1", a),
		l.Record("quay.io/a:v1", a)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("written before it was saved: %v", err)
	}
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(
		"{\n  \"version\": 1,\n  \"images\": {\n    \"quay.io/a:v1\": %q,\n    \"quay.io/z:v1\": %q\n  }\n}\n", a, b)
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
	l, err = Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := l.Digest("docker://quay.io/z:v1"); !ok || d != b {
		t.Errorf("%s, %v", d, ok)
	}
	if _, ok := l.Digest("quay.io/b:v1"); ok {
		t.Error("it knows what it was never told")
	}
	if err := l.Record("quay.io/z:v1", a); !errors.Is(err, fault.ErrIntegrity) || !strings.Contains(err.Error(),
		"quay.io/z:v1") {
		t.Errorf("another digest: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestNilLock(t *testing.T) {
	var l *Lock
	if _, ok := l.Digest("a"); ok {
		t.Error("it knows something")
	}
	if err := errors.Join(l.Record("a", "not a digest"), l.Save()); err != nil {
		t.Error(err)
	}
}

func TestLockRefusesWhatItCannotKeep(t *testing.T) {
	l, err := Open(t.Context(), filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]digest.Digest{
		"":                        digest.FromString("x"),
		strings.Repeat("a", 5000): digest.FromString("x"),
		"a:v1":                    "sha256:short",
		"b:v1":                    digest.SHA512.FromString("x"),
	} {
		if l.Record(name, d) == nil {
			t.Errorf("%.20q %s: recorded", name, d)
		}
	}
}

func TestMalformedLocks(t *testing.T) {
	good := digest.FromString("x")
	for text, want := range map[string]string{
		"":                                       "not JSON",
		"[]":                                     "the file: is of the wrong type",
		"nonsense":                               "line 1: not JSON",
		`{"images":{}}`:                          "version: missing",
		`{"version":"1"}`:                        "version: is of the wrong type: string",
		`{"version":2,"x":1}`:                    "version: unknown version 2, expected 1",
		`{"version":1,"x":1}`:                    "x: unknown field",
		`{"version":1,"images":[]}`:              "images: is of the wrong type: [",
		"{\"version\":1,\n\"images\":{\"a\":1}}": `images["a"]: is of the wrong type: number`,
		"{\"version\":1,\n\"images\":{\"a\":\"md5:12\"}}":      `images["a"]: invalid`,
		`{"version":1,"images":{"":"` + string(good) + `"}}`:   `images[""]: the reference has 0 bytes`,
		"{\"version\":1,\n\"images\":{\"a\":\"\",\"a\":\"\"}}": `line 2: images["a"]: duplicate object member name`,
		`{"version":1,"images":{"a":"` + string(good):          "line 1:",
		"{\"version\":1,\"images\":{\"a\xff\":\"\"}}":          "invalid UTF-8",
		`{"version":1}{"version":1}`:                           "line 1",
	} {
		path := filepath.Join(t.TempDir(), "lock")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), path)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(),
			path) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestLockAtOddPlaces(t *testing.T) {
	dir := t.TempDir()
	canary := filepath.Join(dir, "canary")
	if err := os.WriteFile(canary, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(canary, link); err != nil {
		t.Fatal(err)
	}
	if l, err := Open(t.Context(), link); err == nil || l != nil {
		t.Errorf("a link to what is no lock: %v", err)
	}
	if err := os.WriteFile(canary, []byte(`{"version":1,"images":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Record("a", digest.FromString("a")); err == nil || !strings.Contains(err.Error(), "name the file itself") {
		t.Errorf("link: %v", err)
	}
	if _, err := Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "is a directory, expected a file") {
		t.Errorf("directory: %v", err)
	}
	// A link that appears between reading and writing.
	l, err = Open(t.Context(), filepath.Join(dir, "late"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Record("a", digest.FromString("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(canary, filepath.Join(dir, "late")); err != nil {
		t.Fatal(err)
	}
	if err := l.Save(); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("late link: %v", err)
	}
	if text, _ := os.ReadFile(canary); string(text) != `{"version":1,"images":{}}` {
		t.Errorf("the canary is %q", text)
	}
}

// Twenty writers that have read the file before any of them wrote it lose nothing.
func TestLockIsMerged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	const writers = 20
	var locks []*Lock
	for range writers {
		l, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, l)
	}
	var wg sync.WaitGroup
	for i, l := range locks {
		wg.Go(func() {
			name := fmt.Sprintf("quay.io/acme/%d:v1", i)
			if err := errors.Join(l.Record(name, digest.FromString(name)), l.Record("shared", digest.FromString("s")),
				l.Save()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	l, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.images) != writers+1 {
		t.Errorf("%d of %d images", len(l.images), writers+1)
	}
	// What disagrees with another process's is refused, and changes nothing.
	before, _ := os.ReadFile(path)
	late := locks[0]
	late.images, late.fresh = map[string]digest.Digest{}, map[string]digest.Digest{}
	if err := late.Record("shared", digest.FromString("other")); err != nil {
		t.Fatal(err)
	}
	if err := late.Save(); !errors.Is(err, fault.ErrIntegrity) {
		t.Errorf("conflict: %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("the file has changed")
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// A run that is killed right after the file was put in its place leaves its stage to the next, which has nothing to
// write.
func TestLockSweeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Record("a", digest.FromString("a")), l.Save()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(filepath.Dir(path), layouts.StagePrefix+"1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Record("a", digest.FromString("a")), l.Save()); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
