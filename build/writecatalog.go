package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/layers"
)

// WriteDir writes the directory that [Catalog] puts into an image as /configs: the same files with the same bytes.
// The target must not exist, or be an empty directory; it is created completely or not at all.
func (in CatalogInput) WriteDir(ctx context.Context, target string) (err error) {
	if err := in.check(); err != nil {
		return err
	}
	d, err := atomicfs.NewDir(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Abort()) }()
	s := newSpool(d.Path())
	contents, err := in.plan(ctx, &Options{}, s)
	if err == nil {
		err = writeContents(ctx, d.Path(), contents)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if err := os.Chmod(d.Path(), 0o755); err != nil {
		return err
	}
	return d.Commit()
}

// writeContents writes and syncs files in an empty private directory.
func writeContents(ctx context.Context, dir string, contents []content) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	made := map[string]bool{".": true}
	var dirs []string // parents before children
	var mkdir func(name string) error
	mkdir = func(name string) error {
		if made[name] {
			return nil
		}
		if err := mkdir(filepath.Dir(name)); err != nil {
			return err
		}
		made[name], dirs = true, append(dirs, name)
		return errors.Join(root.Mkdir(name, 0o755), root.Chmod(name, 0o755))
	}
	for _, c := range contents {
		for _, e := range c.entries {
			name, err := filepath.Localize(strings.TrimPrefix(e.Name, cataloglayer.ConfigsDir+"/"))
			if err != nil {
				return fmt.Errorf("%.200q: %w", e.Name, err)
			}
			if err := mkdir(filepath.Dir(name)); err != nil {
				return err
			}
			if err := writeEntry(ctx, root, name, e); err != nil {
				return err
			}
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := atomicfs.SyncDir(filepath.Join(dir, dirs[i])); err != nil {
			return err
		}
	}
	return atomicfs.SyncDir(dir)
}

// writeEntry writes one file, which must not exist.
func writeEntry(ctx context.Context, root *os.Root, name string, e layers.Entry) (err error) {
	from, err := e.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, ctxio.Reader{Ctx: ctx, R: from})
	switch {
	case err != nil:
	case n != e.Size:
		err = fmt.Errorf("%s: %w", e.Name, layers.ErrChanged)
	default:
		err = errors.Join(to.Chmod(0o644), to.Sync())
	}
	return errors.Join(err, to.Close())
}
