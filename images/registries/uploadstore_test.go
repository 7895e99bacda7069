package registries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// An upload that was saved is found by its repository and digest, also by another process, until it is forgotten.
func TestUploadStore(t *testing.T) {
	dir, d := filepath.Join(t.TempDir(), "uploads"), digest.FromString("blob")
	first, err := NewUploadStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	first.Save("quay.io/a", d, "/old")
	first.Save("quay.io/a", d, "/v2/a/blobs/uploads/1?secret=x")
	second, err := NewUploadStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := second.Load("quay.io/a", d); !ok || at != "/v2/a/blobs/uploads/1?secret=x" {
		t.Errorf("%q, %v", at, ok)
	}
	if at, ok := second.Load("quay.io/b", d); ok {
		t.Errorf("of another repository: %q", at)
	}
	info, err := os.Stat(second.file("quay.io/a", d))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	second.Forget("quay.io/a", d)
	if at, ok := first.Load("quay.io/a", d); ok {
		t.Errorf("forgotten: %q", at)
	}
}

// A file that is not what the store writes is no upload, and so is one that is too large or too old.
func TestUploadStoreIgnores(t *testing.T) {
	dir, d := t.TempDir(), digest.FromString("blob")
	s, err := NewUploadStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"no JSON":            "{",
		"another digest":     `{"repository":"quay.io/a","digest":"` + digest.FromString("x").String() + `","location":"/x"}`,
		"another repository": `{"repository":"quay.io/b","digest":"` + d.String() + `","location":"/x"}`,
		"no location":        `{"repository":"quay.io/a","digest":"` + d.String() + `"}`,
		"too large":          strings.Repeat(" ", maxUploadText+1),
	} {
		if err := os.WriteFile(s.file("quay.io/a", d), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if at, ok := s.Load("quay.io/a", d); ok {
			t.Errorf("%s: %q", name, at)
		}
	}
	s.Save("quay.io/a", d, strings.Repeat("x", maxUploadText))
	if at, ok := s.Load("quay.io/a", d); ok {
		t.Errorf("a location that is too long: %d bytes", len(at))
	}
	s.Save("quay.io/a", d, "/x")
	old := time.Now().Add(-uploadLife - time.Hour)
	if err := os.Chtimes(s.file("quay.io/a", d), old, old); err != nil {
		t.Fatal(err)
	}
	if s, err = NewUploadStore(dir); err != nil {
		t.Fatal(err)
	}
	if at, ok := s.Load("quay.io/a", d); ok {
		t.Errorf("an old upload: %q", at)
	}
}

// A store has a maximum number of uploads.
func TestUploadStoreIsBounded(t *testing.T) {
	s, err := NewUploadStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.count = maxUploads
	s.Save("quay.io/a", digest.FromString("blob"), "/x")
	if at, ok := s.Load("quay.io/a", digest.FromString("blob")); ok {
		t.Errorf("%q", at)
	}
	if _, err := NewUploadStore(filepath.Join(t.TempDir(), "absent", "\x00")); err == nil {
		t.Error("a directory that cannot be made: no error")
	}
}
