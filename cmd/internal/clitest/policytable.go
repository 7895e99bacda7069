package clitest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// CachedRun is run with the cache.
func (w *SignedWorld) CachedRun(line string, more ...string) Result {
	w.Helper()
	return w.finish(append(append(strings.Fields(line), more...), "--use-http", "-q"))
}

// Cached runs a command with the cache, which must succeed.
func (w *SignedWorld) Cached(line string) {
	w.Helper()
	if got := w.CachedRun(line); got.Status != 0 {
		w.Fatalf("%s: %+v", line, got)
	}
}

// Store makes an empty store of podman, and a cache.
func (w *SignedWorld) Store() {
	w.Helper()
	conf := filepath.Join(w.Top, "storage.conf")
	WriteFile(w.T, conf, fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n",
		filepath.Join(w.Top, "graph"), filepath.Join(w.Top, "runroot")))
	w.env = []string{"CONTAINERS_STORAGE_CONF=" + conf, "XDG_CACHE_HOME=" + filepath.Join(w.Top, "cache")}
	w.Cleanup(func() { // directories of images may be read-only
		_ = filepath.WalkDir(w.Top, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(name, 0o700)
			}
			return err
		})
	})
}
