package layouts

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/operator-bindery/bindery/internal/ctxio"
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
