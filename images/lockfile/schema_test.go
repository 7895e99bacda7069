package lockfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A lock file that names its schema for editors keeps it when an image is added.
func TestLockKeepsSchema(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.lock")
	const schema = `"$schema": "https://example.com/lock.json"`
	if err := os.WriteFile(file, []byte(`{`+schema+`,"version":1,"images":{}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Record("quay.io/acme/a:v1",
		"sha256:"+"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), schema) || !strings.Contains(string(text), "acme/a") {
		t.Errorf("%v: %s", err, text)
	}
}
