package catalogdtest_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/olmv1/catalogdtest"
)

// TestRecorded compares with what the real programs unpacked of the same images and stored of their catalogs.
func TestRecorded(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links")
	}
	layout := t.TempDir()
	for name, text := range recorded.Archive(t, "testdata/images.tar.zst") {
		at := filepath.Join(layout, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compared := 0
	for file, want := range recorded.Archive(t, "testdata/answers.tar.zst") {
		dir, name := filepath.Split(strings.TrimSuffix(file, ".txt"))
		if strings.HasPrefix(name, "ref-") || strings.HasPrefix(name, "zz-") {
			continue // what a registry says of names; an image that is not there
		}
		compared++
		t.Run(name, func(t *testing.T) {
			img, err := imagetest.Client(t).Image(t.Context(), "oci:"+layout+":"+name, v1.Platform{
				OS: "linux", Architecture: "amd64"})
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			if got := report(t, img, dir == "unpack-bundle/"); got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	if compared != 75 {
		t.Errorf("%d images were compared", compared)
	}
}

// report describes what is unpacked and stored in the form of the recordings.
func report(t *testing.T, img *images.Image, bundle bool) string {
	t.Helper()
	var out strings.Builder
	// Deep enough for the links of the recordings to lead to nothing, whatever this machine has.
	dir := filepath.Join(t.TempDir(), "1", "2", "3", "4", "5", "6")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unpack := catalogdtest.Catalog
	if bundle {
		unpack = catalogdtest.Bundle
	}
	u, err := unpack(t.Context(), img, dir)
	if err != nil {
		if u == nil {
			return fmt.Sprintf("error: %s\n", err) // nothing is unpacked
		}
		left := 0
		message := strings.ReplaceAll(err.Error(), dir, "<cache>/owner")
		fmt.Fprintf(&out, "error: %s\n", message)
		if _, reason, ok := strings.Cut(message, "read-only: "); ok {
			// What cannot be made read-only cannot be made writable again either, and is left.
			fmt.Fprintf(&out, "error making directory writable for deletion: %s\n", reason)
			left = 1
		}
		fmt.Fprintf(&out, "left in the cache: %d entries\n", left)
		return out.String()
	}
	fmt.Fprintf(&out, "digest: %s\n", img.Top)
	err = filepath.WalkDir(u.Root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(u.Root, name)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			fmt.Fprintf(&out, "dr-x------ self %s\n", relative)
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			fmt.Fprintf(&out, "Lrwxrwxrwx self %s -> %s\n", relative, target)
			return err
		default:
			text, err := os.ReadFile(name)
			fmt.Fprintf(&out, "-r-------- self %s size=%d sha256=%x nlink=%d\n", relative, len(text),
				sha256.Sum256(text), links(t, name))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if bundle {
		return out.String()
	}
	var stored bytes.Buffer
	if err := u.Store(&stored); err != nil {
		message := strings.ReplaceAll(err.Error(), dir, "<cache>/owner")
		fmt.Fprintf(&out, "store error: %s\n", message)
		return out.String()
	}
	fmt.Fprintf(&out, "stored: %d bytes sha256=%x\n", stored.Len(), sha256.Sum256(stored.Bytes()))
	for line := range strings.SplitSeq(strings.TrimSuffix(stored.String(), "\n"), "\n") {
		if len(line) > 160 {
			line = line[:160] + "..."
		}
		fmt.Fprintf(&out, "  %s\n", line)
	}
	return out.String()
}
