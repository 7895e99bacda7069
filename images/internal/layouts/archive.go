package layouts

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// archiveLayout writes the OCI image layout in dir as a tar archive. The archive is a function of the layout's content:
// names are sorted, and owners, times and modes are constant.
func archiveLayout(ctx context.Context, dir, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tw := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return addToArchive(ctx, tw, name, filepath.ToSlash(rel), e.IsDir())
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

func addToArchive(ctx context.Context, tw *tar.Writer, path, name string, dir bool) error {
	h := &tar.Header{Name: name, Mode: 0o644, ModTime: time.Unix(0, 0)}
	if dir {
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, name+"/", 0o755
		return tw.WriteHeader(h)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(tw, ctxio.Reader{Ctx: ctx, R: f})
	return err
}

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
