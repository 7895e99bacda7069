package clitest

import (
	"os"
	"path/filepath"
	"testing"
)

// BundleDir creates a directory that contains the bundle directory "bundle".
func BundleDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	return dir
}
