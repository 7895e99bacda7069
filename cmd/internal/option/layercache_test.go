package option_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/images/blobcache"
)

// noteState is the output of "cache info -o json" for notes.
type noteState struct {
	Blobs  int
	Layers struct {
		Directory       string
		Notes           int
		Bytes, MaxBytes int64
	}
}

// layerCache runs commands with a separate cache directory.
type layerCache struct {
	t   *testing.T
	dir string
}

// seal is the secret of the notes in tests.
const seal = "the secret of the tests"

func (l layerCache) run(args ...string) clitest.Result {
	l.t.Helper()
	cmd := clitest.Command(l.dir, "bindery", args...)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(l.dir, "cache"), "BINDERY_CACHE_KEY=env://SEAL", "SEAL="+seal)
	got := clitest.Finish(l.t, cmd)
	if got.Status != 0 {
		l.t.Fatalf("%v: %+v", args, got)
	}
	return got
}

func (l layerCache) info() (s noteState) {
	l.t.Helper()
	if err := json.Unmarshal([]byte(l.run("cache", "info", "-o", "json").Stdout), &s); err != nil {
		l.t.Fatal(err)
	}
	return s
}

// Every command that builds images prints and writes the same without a cache, with an empty one, with a complete one,
// and with one that has lost the layers' bytes.
func TestImagesAreTheSameFromTheCache(t *testing.T) {
	for _, args := range []string{
		"build catalog cat --server none -t acme/c:v1",
		"build catalog small.db --server none -t acme/c:v1 --compression zstd",
		"migrate small.db --server none -t acme/c:v1",
		"index rm -o etcd -f small.db --server none -t acme/c:v1",
		"index rm -o etcd -f small.db --server none -t acme/c:v1 --output-format fbc",
	} {
		t.Run(args, func(t *testing.T) {
			l := layerCache{t, clitest.WorkDir(t)}
			words := append(strings.Fields(args), "--quiet")
			out := filepath.Join(l.dir, "c.oci")
			want := l.run(append(words, "--no-cache")...)
			tree := clitest.Snapshot(t, out)
			if left, err := os.ReadDir(filepath.Join(l.dir, "cache")); len(left) > 0 {
				t.Errorf("with --no-cache: %v, %v", left, err)
			}
			for _, state := range []string{"empty", "full", "without blobs"} {
				if err := os.RemoveAll(out); err != nil {
					t.Fatal(err)
				}
				if state == "without blobs" {
					if err := os.RemoveAll(filepath.Join(l.dir, "cache", "bindery", "blobs")); err != nil {
						t.Fatal(err)
					}
				}
				if got := l.run(words...); got != want {
					t.Errorf("%s cache: %+v\nwant %+v", state, got, want)
				}
				if got := clitest.Snapshot(t, out); got != tree {
					t.Errorf("%s cache: another layout:\n%s\nwant\n%s", state, got, tree)
				}
			}
			if s := l.info(); s.Layers.Notes == 0 || s.Blobs == 0 {
				t.Errorf("nothing is kept: %+v", s)
			}
		})
	}
}

// Wrong notes cost only a second attempt.
func TestImageIsRightInSpiteOfWrongNotes(t *testing.T) {
	l := layerCache{t, clitest.WorkDir(t)}
	words := strings.Fields("build catalog cat --server none -t acme/c:v1 --quiet")
	want := l.run(words...)
	dir := l.info().Layers.Directory
	blobs, err := blobcache.Open(filepath.Join(filepath.Dir(dir), "blobs"), blobcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	hints, err := blobs.OpenHints(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer hints.Close()
	notes := hints.Sealed([]byte(seal))
	lies := 0
	err = filepath.WalkDir(filepath.Join(dir, "sha256"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		key := digest.NewDigestFromEncoded(digest.SHA256, d.Name())
		text, ok := notes.Get(key)
		var layer map[string]any
		if !ok || json.Unmarshal(text, &layer) != nil || layer["diffID"] == nil {
			return nil
		}
		layer["digest"] = digest.FromString("another layer")
		text, err = json.Marshal(layer)
		notes.Put(key, text)
		lies++
		return err
	})
	if err != nil || lies == 0 {
		t.Fatalf("%d notes of layers, %v", lies, err)
	}
	out := filepath.Join(l.dir, "c.oci")
	tree := clitest.Snapshot(t, out)
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	got := l.run(words...)
	if got.Stdout != want.Stdout || clitest.Snapshot(t, out) != tree {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A run that may only write the cache rewrites the note of a layer, with the blob of another catalog: neither a build with
// a key nor one without takes it, and the notes of one key are not those of another.
func TestForgedNotesDecideNothing(t *testing.T) {
	l := layerCache{t, clitest.WorkDir(t)}
	words := strings.Fields("build catalog cat --server none -t acme/c:v1 --dry-run")
	want := l.run(words...)
	run := func(key string) clitest.Result {
		t.Helper()
		args := words
		if key != "" {
			args = append(args, "--cache-key", key)
		}
		cmd := clitest.Command(l.dir, "bindery", args...)
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(l.dir, "cache"), "SEAL="+seal, "OTHER=another secret of the tests",
			"SHORT=secret")
		return clitest.Finish(t, cmd)
	}
	for _, c := range []struct {
		key    string
		cached bool
	}{{"env://SEAL", true}, {"", false}, {"env://OTHER", false}, {"env://OTHER", true}} {
		got := run(c.key)
		if got.Status != 0 || got.Stdout != want.Stdout || strings.Contains(got.Stderr, " cached)") != c.cached {
			t.Errorf("%q: %+v, want cached: %v", c.key, got, c.cached)
		}
	}
	dir := l.info().Layers.Directory
	forged := 0
	err := filepath.WalkDir(filepath.Join(dir, "sha256"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, text, _ = bytes.Cut(text, []byte("\n"))
		var layer map[string]any
		if json.Unmarshal(text, &layer) != nil || layer["diffID"] == nil {
			return nil
		}
		layer["digest"] = digest.FromString("another layer")
		text, err = json.Marshal(layer)
		sum := sha256.Sum256([]byte("sha256:" + d.Name() + "\n" + string(text)))
		forged++
		return errors.Join(err, os.WriteFile(path, fmt.Appendf(nil, "%x\n%s", sum, text), 0o600))
	})
	if err != nil || forged == 0 {
		t.Fatalf("%d notes of layers, %v", forged, err)
	}
	for _, key := range []string{"", "env://SEAL", "env://OTHER"} {
		if got := run(key); got.Status != 0 || got.Stdout != want.Stdout {
			t.Errorf("%q: %+v, want %q", key, got, want.Stdout)
		}
	}
	if got := run("env://SHORT"); got.Status == 0 || !strings.Contains(got.Stderr, "too short") {
		t.Errorf("%+v", got)
	}
	if got := run("env://MISSING"); got.Status == 0 || !strings.Contains(got.Stderr, "MISSING is not set") {
		t.Errorf("%+v", got)
	}
}

func TestNotesArePruned(t *testing.T) {
	l := layerCache{t, clitest.WorkDir(t)}
	l.run(strings.Fields("build catalog cat --server none -t acme/c:v1 --quiet --dry-run")...)
	before := l.info()
	if before.Layers.MaxBytes != 128<<20 || before.Layers.Bytes < int64(before.Layers.Notes)*4096 {
		t.Errorf("%+v", before)
	}
	l.run("cache", "prune", "--all", "--dry-run")
	if s := l.info(); s != before {
		t.Errorf("a dry run has changed %+v to %+v", before, s)
	}
	if out := l.run("cache", "prune", "--all").Stdout; !strings.Contains(out, filepath.Join("bindery", "layers")) {
		t.Errorf("table:\n%s", out)
	}
	if s := l.info(); s.Layers.Notes != 0 || s.Blobs != 0 {
		t.Errorf("something is left: %+v", s)
	}
	if out := l.run("cache", "info").Stdout; strings.Count(out, "\n") != 3 {
		t.Errorf("table:\n%s", out)
	}
}
