package atomicfs

import (
	"errors"
	"io"
	"os"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

// WriteBlob writes a file that everybody may read of what a reader has: under a temporary name in a directory that is
// the writer's own, in the file system of the target, and then renamed to it. The file is durable, and its name is when
// its directory is synced.
func WriteBlob(dir, target string, r io.Reader) error {
	f, err := os.CreateTemp(dir, "blob-")
	if err != nil {
		return err
	}
	_, err = ctxio.Copy(f, r)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
