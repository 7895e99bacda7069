package clitest

import (
	"os"
	"path/filepath"
	"testing"
)

// ManifestsDir returns a directory with the bundle "bundle", which supports one namespace only.
func ManifestsDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	return dir
}
