package layouts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// unpackLayout writes the files of an archive below a directory, which must not exist. The limits are those of
// [OpenRepository], and bound the size of all files together by Compressed. A link is written as the file that it
// refers to.
func unpackLayout(ctx context.Context, path, dir string, limits limit.Limits, temp string) (err error) {
	files, err := openTarFiles(ctx, path, limits, temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := files.file.Stat()
	if err != nil {
		return err
	}
	most := max(limits.Compressed, info.Size())
	left := most
	for _, name := range slices.Sorted(maps.Keys(files.entries)) {
		r, size, err := files.open(name)
		if err != nil {
			return err
		}
		if left -= size; left < 0 {
			return limit.Errorf(limit.Compressed, most, "the archive has more than %d bytes", most)
		}
		to := filepath.FromSlash(name)
		if !filepath.IsLocal(to) {
			return fmt.Errorf("%w: %.200q is a name outside the archive", fault.ErrInvalid, name)
		}
		if err := root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(0o644))
		if err != nil {
			return err
		}
		_, err = io.Copy(f, ctxio.Reader{Ctx: ctx, R: r})
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
