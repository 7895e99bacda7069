package layouts

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// Output is an image in files that is written to a stage and then put in its place.
type Output struct {
	place transport.Destination
	stage *Stage
	made  []string
	done  bool
	// within tells that the stage has what is added to an image that is at the place, and not the image.
	within bool
	writer *Writer // of a layout; nil until there is one
}

// StagedFile is the name in its stage of an output that is one file or one plain directory.
const StagedFile = "out"

// NewOutput makes a stage for a place. The caller copies the image to [Output.Staged], calls [Output.Finish] and
// [Output.Commit], and in any case [Output.Discard]. A layout is written by a [Writer].
func NewOutput(ctx context.Context, p transport.Destination) (*Output, error) {
	in, err := StageDir(p)
	if err != nil {
		return nil, err
	}
	out := &Output{place: p}
	if out.made, err = Parents(in); err != nil {
		return nil, err
	}
	if err := out.makeStage(ctx, in); err != nil {
		return nil, err
	}
	return out, nil
}

// makeStage makes the stage in a directory, with an empty layout if the output is one. After an error nothing is left.
func (out *Output) makeStage(ctx context.Context, in string) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Discard())
		}
	}()
	if out.stage, err = NewStage(ctx, in); err != nil {
		return err
	}
	if err := out.check(); err != nil {
		return err
	}
	if isLayout(out.place) {
		return out.makeLayout()
	}
	return nil
}

// Staged is the file or directory to copy the image to, if it is no layout.
func (out *Output) Staged() string { return out.stage.Join(StagedFile) }

// Finish completes the staged image and synchronises it.
func (out *Output) Finish(ctx context.Context) error {
	layout := out.stage.Join(stagedLayout)
	if isLayout(out.place) {
		if err := out.writer.flush(); err != nil {
			return err
		}
	}
	switch {
	case out.within || out.place.Transport == transport.OCI:
		blobs := filepath.Join(layout, blobsDir)
		return errors.Join(atomicfs.SyncDir(filepath.Join(blobs, digest.SHA256.String())), atomicfs.SyncDir(blobs),
			atomicfs.SyncDir(layout))
	case out.place.Transport == transport.OCIArchive:
		if err := archiveLayout(ctx, layout, out.stage.Join(StagedFile)); err != nil {
			return err
		}
	}
	return out.sync()
}

// sync synchronises the staged file, or the files of a directory, which the library has not synchronised.
func (out *Output) sync() error {
	path := out.stage.Join(StagedFile)
	if out.place.Transport == transport.Directory {
		names, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := syncFile(filepath.Join(path, n.Name())); err != nil {
				return err
			}
		}
		return atomicfs.SyncDir(path)
	}
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

// check returns an error if the output exists and is not of its format.
func (out *Output) check() error {
	info, err := LstatOutput(out.place.Path)
	if err != nil || info == nil {
		return err
	}
	switch out.place.Transport {
	case transport.OCI:
		index, err := ReadIndex(out.place.Path)
		if err != nil {
			return err
		}
		if index == nil {
			return checkUsable(out.place.Path)
		}
		return checkLayout(out.place.Path)
	case transport.Directory:
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", out.place.Path)
		}
		return checkReplaceable(out.place.Path)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", out.place.Path)
	}
	return checkArchive(out.place.Path, info.Size())
}

// checkArchive returns an error for a file that is neither empty nor a tar archive: it may be anything.
func checkArchive(path string, size int64) (err error) {
	if size == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, 8)
	if n, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return err
	} else if err := archive.CheckPlain(head[:n]); err != nil {
		return fmt.Errorf("%s is not replaced: %w, or remove it", path, err)
	}
	if _, err := tar.NewReader(f).Next(); err != nil && err != io.EOF {
		return fmt.Errorf("%s is neither empty nor an archive, and is not replaced", path)
	}
	return nil
}

// checkReplaceable returns an error for a directory that is neither empty nor an image in the "dir" format.
func checkReplaceable(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil || len(names) == 0 {
		return err
	}
	if _, err := regularfile.Read(filepath.Join(dir, "version"), limit.MaxManifest); err != nil {
		return fmt.Errorf("%s is neither empty nor an image directory: it has no file \"version\"", dir)
	}
	return nil
}

func (out *Output) makeLayout() error {
	layout := out.stage.Join(stagedLayout)
	if err := os.MkdirAll(filepath.Join(layout, blobsDir, digest.SHA256.String()), 0o755); err != nil {
		return err
	}
	text, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	if err != nil {
		return err
	}
	if err := WriteSync(filepath.Join(layout, layoutFile), text); err != nil {
		return err
	}
	return WriteSync(filepath.Join(layout, indexFile), []byte(emptyIndex))
}

const emptyIndex = `{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageIndex + `","manifests":[]}`

// Discard removes the stage, and before Commit also the directories that were made for the output and are empty.
func (out *Output) Discard() error {
	err := out.writer.close()
	out.writer = nil
	if out.stage != nil {
		err = errors.Join(err, out.stage.Close())
	}
	if !out.done {
		RemoveEmpty(out.made)
	}
	return err
}
