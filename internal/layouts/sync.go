package layouts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// sync synchronises the staged files that the library has not synchronised.
func (out *Output) sync() error {
	switch out.place.Format {
	case OCI:
		return syncLayout(out.stage.Join(stagedLayout))
	case Directory:
		dir := out.stage.Join(StagedFile)
		names, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := syncFile(filepath.Join(dir, n.Name())); err != nil {
				return err
			}
		}
		return atomicfs.SyncDir(dir)
	}
	path := out.stage.Join(StagedFile)
	mode, err := newFileMode(path + ".mode")
	if err != nil {
		return err
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	return syncFile(path)
}

// newFileMode returns the default mode of new files, by making one: the umask cannot be read without changing it. The
// file must not exist.
func newFileMode(path string) (fs.FileMode, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close(), os.Remove(path)); err != nil {
		return 0, err
	}
	return info.Mode().Perm(), nil
}

// syncLayout synchronises the small files of a layout, which the library does not, and its directories.
func syncLayout(layout string) error {
	index, err := ReadIndex(layout)
	if err != nil {
		return err
	}
	if index == nil {
		return fmt.Errorf("%w: the staged layout has no index", fault.ErrInvalid)
	}
	files := []string{filepath.Join(layout, layoutFile)}
	for _, d := range index.Descriptors {
		if err := d.Digest.Validate(); err != nil {
			return err
		}
		files = append(files, BlobPath(layout, d.Digest))
		// A list of referrers names also those that are not staged.
		if d.MediaType == v1.MediaTypeImageIndex && !reflist.Belongs(d.Annotations[v1.AnnotationRefName]) {
			instances, err := indexInstances(BlobPath(layout, d.Digest))
			if err != nil {
				return err
			}
			for _, i := range instances {
				// Images may be left out of an index, or be in the layout that this one is added to.
				if err := syncFile(BlobPath(layout, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	for _, f := range files {
		if err := syncFile(f); err != nil {
			return err
		}
	}
	return errors.Join(atomicfs.SyncDir(filepath.Join(layout, blobsDir, digest.SHA256.String())),
		atomicfs.SyncDir(filepath.Join(layout, blobsDir)), atomicfs.SyncDir(layout))
}

func indexInstances(path string) ([]digest.Digest, error) {
	text, err := regularfile.Read(path, limit.MaxManifest)
	if err != nil {
		return nil, err
	}
	list, err := manifest.OCI1IndexFromManifest(text)
	if err != nil {
		return nil, err
	}
	return list.Instances(), nil
}
