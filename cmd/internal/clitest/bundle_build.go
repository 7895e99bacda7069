package clitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
)

// Done runs the program, which must succeed, and returns its standard output.
func Done(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	got := RunProgram(t, dir, name, args...)
	if got.Status != 0 {
		t.Fatalf("%v: %+v", args, got)
	}
	return got.Stdout
}

// ImageFiles returns the files of an image in a layout with their contents.
func ImageFiles(t *testing.T, name string) (*images.Image, map[string]string) {
	t.Helper()
	img, err := imagetest.Client(t).Image(t.Context(), name, v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	tree, err := img.Extract(t.Context(), []string{"."}, images.ExtractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	out := t.TempDir()
	if err := os.CopyFS(filepath.Join(out, "x"), tree); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(Snapshot(t, filepath.Join(out, "x"))) {
		name := strings.Fields(line)[0]
		if info, err := os.Stat(filepath.Join(out, "x", name)); err == nil && !info.IsDir() {
			files[name] = ReadFile(t, filepath.Join(out, "x", name))
		}
	}
	return img, files
}
