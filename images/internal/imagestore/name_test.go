package imagestore

import (
	"strings"
	"testing"
)

// The place of a store is [DRIVER@ROOT+RUNROOT:OPTIONS], as containers-storage(7) has it.
func TestSplit(t *testing.T) {
	for text, want := range map[string][2]string{
		"acme/cat:v1":                         {"", "acme/cat:v1"},
		"[/root]acme/cat":                     {"/root", "acme/cat"},
		"[vfs@/root+/run]acme/cat":            {"vfs@/root+/run", "acme/cat"},
		"[vfs@/root+/run:a=b,c=d]acme/cat:v1": {"vfs@/root+/run:a=b,c=d", "acme/cat:v1"},
	} {
		if spec, name, err := Split(text); err != nil || spec != want[0] || name != want[1] {
			t.Errorf("%s: %q, %q, %v", text, spec, name, err)
		}
	}
	for text, want := range map[string]string{"[/root": "does not end", "[]x": "is empty", "[@/root]x": "before @",
		"[vfs@]x": "root directory", "[vfs@root]x": "not absolute", "[/root+run]x": "not absolute",
		"[/ro\not]x": "not the place"} {
		if spec, name, err := Split(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %q, %v", text, spec, name, err)
		}
	}
}

func TestTag(t *testing.T) {
	for name, want := range map[string]string{"cat": "docker.io/library/cat:latest", "localhost/cat:v1": "localhost/cat:v1",
		"quay.io/acme/cat": "quay.io/acme/cat:latest"} {
		if got, err := Tag(name); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "Not A Name", "quay.io/acme/cat@sha256:" + strings.Repeat("a", 64)} {
		if got, err := Tag(name); err == nil {
			t.Errorf("%q: %v", name, got)
		}
	}
	for name, want := range map[string]bool{"cat": false, "acme/cat": false, "quay.io/cat": true, "localhost/cat": true,
		"host:5000/cat": true} {
		if HasHost(name) != want {
			t.Errorf("HasHost(%s) is not %v", name, want)
		}
	}
}
