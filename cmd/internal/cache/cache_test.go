package cache_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// cacheState is the output of "cache info -o json".
type cacheState struct {
	Directory string
	Blobs     int
	Bytes     int64
	MaxBytes  int64
}

func TestCacheCommands(t *testing.T) {
	dir := clitest.WorkDir(t)
	r := testregistry.New(t)
	r.AddImage(t, "acme/catalog", "v1", testregistry.Image{
		Labels: map[string]string{build.ConfigsLabel: "/configs"},
		Layers: []map[string]string{testregistry.Files(t, filepath.Join(dir, "cat"), "configs")},
	})
	ref := r.Host() + "/acme/catalog:v1"
	env := []string{"XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}
	run := func(args ...string) string {
		t.Helper()
		cmd := clitest.Command(dir, "bindery", args...)
		cmd.Env = append(cmd.Env, env...)
		got := clitest.Finish(t, cmd)
		if got.Status != 0 || strings.Contains(got.Stderr, "cache") {
			t.Fatalf("%v: %+v", args, got)
		}
		return got.Stdout
	}
	info := func() (s cacheState) {
		t.Helper()
		if err := json.Unmarshal([]byte(run("cache", "info", "-o", "json")), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}

	if s := info(); s.Blobs != 0 || s.MaxBytes != 2<<30 || s.Directory != filepath.Join(dir, "cache", "bindery",
		"blobs") {
		t.Errorf("before: %+v", s)
	}
	if _, err := os.Lstat(filepath.Join(dir, "cache")); !os.IsNotExist(err) {
		t.Errorf("cache info has made the directory: %v", err)
	}
	want := run("render", "cat")
	if got := run("render", ref, "--use-http", "--no-cache"); got != want {
		t.Error("the image renders otherwise than the directory")
	}
	if s := info(); s.Blobs != 0 {
		t.Errorf("with --no-cache: %+v", s)
	}
	for range 2 {
		if got := run("render", ref, "--use-http"); got != want {
			t.Error("the image renders otherwise than the directory")
		}
	}
	if n := r.Count("GET /v2/acme/catalog/blobs/"); n != 4 {
		t.Errorf("%d blobs were fetched, want 2 without the cache and 2 for it: %v", n, r.Requests())
	}
	if s := info(); s.Blobs != 3 || s.Bytes < 3*4096 {
		t.Errorf("after: %+v", s)
	}
	if out := run("cache", "info"); !strings.Contains(out, "DIRECTORY") || !strings.Contains(out, "  3      ") {
		t.Errorf("table:\n%s", out)
	}
	run("cache", "prune")
	run("cache", "prune", "--all", "--dry-run")
	if s := info(); s.Blobs != 3 {
		t.Errorf("too much has been removed: %+v", s)
	}
	var done struct{ RemovedBlobs, Blobs int }
	less := fmt.Sprint(info().Bytes - 1)
	if err := json.Unmarshal([]byte(run("cache", "prune", "--max-size", less, "-o", "json")), &done); err != nil ||
		done.RemovedBlobs != 1 || done.Blobs != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	run("cache", "prune", "--all")
	if s := info(); s.Blobs != 0 {
		t.Errorf("something is left: %+v", s)
	}
	for _, args := range [][]string{{"cache", "prune", "--all", "--max-size", "1"},
		{"cache", "prune", "--max-size", "much"}, {"cache", "info", "--cache-size", "0"},
		{"cache", "info", "-o", "xml"}} {
		cmd := clitest.Command(dir, "bindery", append(args, "--error-format", "json")...)
		if got := clitest.Finish(t, cmd); got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, `"class":2`) {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// Without a usable cache images are still read, with one warning if a cache was requested.
func TestNoPlaceForACache(t *testing.T) {
	dir := clitest.WorkDir(t)
	r := testregistry.New(t)
	r.AddImage(t, "acme/catalog", "v1", testregistry.Image{
		Labels: map[string]string{build.ConfigsLabel: "/configs"},
		Layers: []map[string]string{testregistry.Files(t, filepath.Join(dir, "cat"), "configs")},
	})
	file := filepath.Join(dir, "file")
	link := filepath.Join(dir, "link", "bindery")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(link, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(link, "blobs")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env      []string
		warnings int
	}{
		"a file above":       {[]string{"XDG_CACHE_HOME=" + file}, 1},
		"a link":             {[]string{"XDG_CACHE_HOME=" + filepath.Dir(link)}, 1},
		"neither is set":     {[]string{"XDG_CACHE_HOME=", "HOME=relative"}, 0},
		"it cannot be made":  {[]string{"XDG_CACHE_HOME=/proc/nowhere"}, 1},
		"it has other files": {[]string{"XDG_CACHE_HOME=" + other(t)}, 1},
	} {
		cmd := clitest.Command(dir, "bindery", "render", r.Host()+"/acme/catalog:v1", "--use-http")
		cmd.Env = append(cmd.Env, c.env...)
		got := clitest.Finish(t, cmd)
		if got.Status != 0 || got.Stdout == "" || strings.Count(got.Stderr, "warning:") != c.warnings ||
			c.warnings > 0 && !strings.Contains(got.Stderr, "cache") {
			t.Errorf("%s: status %d\n%s", name, got.Status, got.Stderr)
		}
	}
}

// Other returns a cache directory with unrelated files.
func other(t *testing.T) string {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bindery", "blobs", "photos"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A cache directory that another user could have prepared is not used; the warning has a hint.
func TestCacheDirectoryThatIsALink(t *testing.T) {
	dir := clitest.WorkDir(t)
	home := filepath.Join(dir, "home")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "elsewhere"), 0o700), os.Mkdir(home, 0o700),
		os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(home, "bindery"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", home)
	got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "cat", "-t", "x:v1", "--server", "none")
	if got.Status != 0 || strings.Count(got.Stderr, "bindery is a symbolic link") != 1 || !strings.Contains(got.Stderr,
		"set XDG_CACHE_HOME to another directory") {
		t.Errorf("%+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "cache", "info"); got.Status != 1 || !strings.Contains(got.Stderr,
		"hint: set XDG_CACHE_HOME to another directory") {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "elsewhere")); err != nil || len(left) > 0 {
		t.Errorf("written through the link: %v, %v", left, err)
	}
}
