//go:build !nobuildah

package evaluator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/operator-bindery/bindery/build"
)

// errCatalogFile is the class of errors about a file that a catalog image may not have.
var errCatalogFile = errors.New("not allowed in the catalog of an image")

// CheckCatalog refuses, below the directory that the label of catalogs names, what the readers of a catalog do not
// all read in the same way: links (catalogd reads a link to a file twice and fails on others), special files (catalogd
// fails on the image), and files and directories that only some users may read (a server runs as any user). An image
// without the label, or without the directory, is no catalog. The files of the base count.
func (s *parsedStage) CheckCatalog(ctx context.Context) error {
	label, ok := s.Config.Labels[build.ConfigsLabel]
	if !ok {
		return nil
	}
	dir := path.Clean("/" + label)[1:]
	if dir == "" {
		return nil // catalogd takes every file of the image for the catalog: there is no directory to check
	}
	root := s.FS(ctx)
	if err := noLinkTo(root, dir); err != nil {
		return err
	}
	err := fs.WalkDir(root, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		need := fs.FileMode(0o444)
		switch mode := info.Mode(); {
		case mode&fs.ModeSymlink != 0:
			return fmt.Errorf("/%s is a symbolic link, %w: copy the file itself", name, errCatalogFile)
		case !mode.IsRegular() && !mode.IsDir():
			return fmt.Errorf("/%s is neither a file nor a directory, %w", name, errCatalogFile)
		case mode.IsDir():
			need = 0o555
			fallthrough
		default:
			if mode.Perm()&need != need {
				return fmt.Errorf("/%s has the mode %#o, %w: not everyone can read it; COPY --chmod=755 sets another",
					name, mode.Perm(), errCatalogFile)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// noLinkTo refuses a directory that a link leads to: catalogd takes the link for a file.
func noLinkTo(root fs.FS, dir string) error {
	for at := dir; at != "."; at = path.Dir(at) {
		list, err := fs.ReadDir(root, path.Dir(at))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, d := range list {
			if d.Name() == path.Base(at) && d.Type() == fs.ModeSymlink {
				return fmt.Errorf("/%s is a symbolic link, %w: copy the directory itself", at, errCatalogFile)
			}
		}
	}
	return nil
}
