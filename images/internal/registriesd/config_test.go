package registriesd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/fault"
)

// files writes files to a directory.
func files(t *testing.T, dir string, content map[string]string) string {
	t.Helper()
	for name, text := range content {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func named(t *testing.T, text string) reference.Named {
	t.Helper()
	n, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		t.Fatal(err)
	}
	return reference.TagNameOnly(n)
}

// The most specific scope that says something counts, for each setting by itself.
func TestScopes(t *testing.T) {
	dir := files(t, t.TempDir(), map[string]string{
		"a.yaml": `
default-docker: {lookaside: "https://default.example.com", use-sigstore-attachments: false}
docker:
  host.example.com: {use-sigstore-attachments: true}
  host.example.com:5000: {use-sigstore-attachments: true}
  host.example.com/acme: {lookaside: "file:///acme"}
  host.example.com/acme/off: {use-sigstore-attachments: false, sigstore: "http://old.example.com/x"}
  host.example.com/acme/off:v2: {use-sigstore-attachments: true, lookaside-staging: "file:///staging"}
  "*.wild.example.com": {use-sigstore-attachments: true, unknown: 1}
`,
		"ignored.conf": "default-docker: [",
	})
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		use       bool
		lookaside string
	}{
		"host.example.com/x:v1":            {true, "https://default.example.com"},
		"host.example.com:5000/x:v1":       {true, "https://default.example.com"},
		"host.example.com:5001/x:v1":       {false, "https://default.example.com"},
		"host.example.com/acme/x:v1":       {true, "file:///acme"},
		"host.example.com/acmes/x:v1":      {true, "https://default.example.com"},
		"host.example.com/acme/off:v1":     {false, "http://old.example.com/x"},
		"host.example.com/acme/off:v2":     {true, "http://old.example.com/x"},
		"host.example.com/acme/off/sub:v2": {false, "http://old.example.com/x"},
		"a.wild.example.com/x:v1":          {true, "https://default.example.com"},
		"a.b.wild.example.com:99/x:v1":     {true, "https://default.example.com"},
		"wild.example.com/x:v1":            {false, "https://default.example.com"},
		"busybox":                          {false, "https://default.example.com"},
	} {
		use, file := c.Attachments(named(t, name))
		u, err := c.Lookaside(named(t, name))
		if err != nil || use != want.use || u.String() != want.lookaside || file != filepath.Join(dir, "a.yaml") {
			t.Errorf("%s: got %v (%s) and %v, %v", name, use, file, u, err)
		}
	}
}

func TestWithoutFilesNothingIsLookedFor(t *testing.T) {
	c, err := Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if use, file := c.Attachments(named(t, "a.example.com/b:v1")); use || file != "" {
		t.Errorf("got %v (%s)", use, file)
	}
	if u, err := c.Lookaside(named(t, "a.example.com/b:v1")); u != nil || err != nil {
		t.Errorf("got %v, %v", u, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"not YAML":     {map[string]string{"a.yaml": "docker: ["}, "a.yaml"},
		"another type": {map[string]string{"a.yaml": "docker: {x.example.com: 1}"}, "a.yaml"},
		"a word for a boolean": {map[string]string{"a.yaml": "default-docker: {use-sigstore-attachments: maybe}"},
			"a.yaml"},
		"a scope in two files": {map[string]string{"a.yaml": "docker: {x.example.com: {}}",
			"b.yaml": "docker: {x.example.com: {}}"}, `"x.example.com" of docker is both in `},
		"two defaults": {map[string]string{"a.yaml": "default-docker: {}", "b.yaml": "default-docker: {}"},
			"default-docker is both in "},
	} {
		_, err := Load(files(t, t.TempDir(), c.files))
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is named and missing: got %v", err)
	}
}

func TestLookasidesThatAreRefused(t *testing.T) {
	for _, text := range []string{"ftp://user:secret@x.example.com", "/var/lib/sigstore", "http://user:secret@%zz"} {
		dir := files(t, t.TempDir(), map[string]string{"a.yaml": "default-docker: {lookaside: \"" + text + "\"}"})
		c, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Lookaside(named(t, "a.example.com/b:v1"))
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "a.yaml") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// A file of the user hides that of the same name of the system, and others are read too.
func TestPlacesOfTheSystem(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	files(t, home, map[string]string{
		"config/containers/registries.d/mine.yaml": "docker: {mine.example.com: {use-sigstore-attachments: true}}"})
	c, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if use, _ := c.Attachments(named(t, "mine.example.com/x:v1")); !use {
		t.Error("the file of the user was not read")
	}
	one, two := t.TempDir(), t.TempDir()
	files(t, one, map[string]string{"a.yaml": "", "c.yaml": ""})
	files(t, two, map[string]string{"a.yaml": "", "b.yaml": ""})
	got, err := list([]string{one, two, filepath.Join(one, "none")}, true)
	want := []string{filepath.Join(one, "a.yaml"), filepath.Join(two, "b.yaml"), filepath.Join(one, "c.yaml")}
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %q, %v", got, err)
	}
}
