package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// LocalBlobs is a source of images that has blobs as complete, unchanging files. Where the output is in the same file
// system they get there by a hard link.
type LocalBlobs interface {
	// LocalBlob is the file of a blob, if there is one. Its content has been checked against the digest.
	LocalBlob(d digest.Digest) (path string, ok bool)
}

// FileBlobs is a source of images that can make a file of a blob with less work than the blob's bytes take on their way through
// a copy: they are read once, checked and written.
type FileBlobs interface {
	// BlobFile is a file as that of [LocalBlobs]. It is false where the blob is to be read. It is called concurrently.
	BlobFile(ctx context.Context, d digest.Digest) (path string, ok bool)
}

// filesAtOnce is how many blobs are made files at once: they wait for the disk more than for the processor.
const filesAtOnce = 4

// output is a local destination that is prepared in a stage.
type output struct {
	place place
	stage *stage
	made  []string
	done  bool
}

// stagedFile is the name in its stage of a destination that is one file or one plain directory.
const stagedFile = "out"

// newOutput makes a stage for a place, and puts those blobs of the image into it that need not be copied. The caller copies the
// image to the output's reference, then calls finish and commit, and discard in any case.
func newOutput(ctx context.Context, p place, src types.ImageSource) (_ *output, err error) {
	in, err := p.stageDir()
	if err != nil {
		return nil, err
	}
	out := &output{place: p}
	if out.made, err = parents(in); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.discard())
		}
	}()
	if out.stage, err = newStage(ctx, in); err != nil {
		return nil, err
	}
	if err := out.check(); err != nil {
		return nil, err
	}
	if out.isLayout() {
		return out, out.provide(ctx, src)
	}
	return out, nil
}

// isLayout tells whether an OCI layout is staged.
func (out *output) isLayout() bool {
	return out.place.format == formatOCI || out.place.format == formatOCIArchive
}

// reference is where the image is to be copied to.
func (out *output) reference() (types.ImageReference, error) {
	if out.isLayout() {
		return out.place.reference(out.stage.join(stagedLayout))
	}
	return out.place.reference(out.stage.join(stagedFile))
}

// finish completes what was copied, and brings it to the disk.
func (out *output) finish(ctx context.Context) error {
	layout := out.stage.join(stagedLayout)
	if out.isLayout() {
		if err := normalizeIndex(layout); err != nil {
			return err
		}
	}
	if out.place.format == formatOCIArchive {
		if err := archiveLayout(ctx, layout, out.stage.join(stagedFile)); err != nil {
			return err
		}
	}
	return out.sync()
}

// check refuses what is at the output path if it cannot be what an earlier run has written there.
func (out *output) check() error {
	info, err := lstatOutput(out.place.path)
	if err != nil || info == nil {
		return err
	}
	switch out.place.format {
	case formatOCI:
		index, err := readIndex(out.place.path)
		if err != nil {
			return err
		}
		if index == nil {
			return checkUsable(out.place.path)
		}
		return checkLayout(out.place.path)
	case formatDirectory:
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", out.place.path)
		}
		return checkReplaceable(out.place.path)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", out.place.path)
	}
	return checkArchive(out.place.path, info.Size())
}

// checkArchive refuses to replace a file that is neither empty nor a tar archive: it is somebody's other file.
func checkArchive(path string, size int64) (err error) {
	if size == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := tar.NewReader(f).Next(); err != nil && err != io.EOF {
		return fmt.Errorf("%s is neither empty nor an archive, and is not replaced", path)
	}
	return nil
}

// checkReplaceable refuses a directory that is neither empty nor an image in the "dir" format.
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

// provide makes a staged layout and puts the blobs into it that need not be fetched or written: those that the source
// has as files, and those that the layout at the destination has already.
func (out *output) provide(ctx context.Context, src types.ImageSource) (err error) {
	layout := out.stage.join(stagedLayout)
	blobs := filepath.Join(layout, blobsDir, digest.SHA256.String())
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	local, _ := src.(LocalBlobs)
	files, _ := src.(FileBlobs)
	infos, err := allLayers(ctx, src)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(filesAtOnce)
	defer func() { err = errors.Join(err, g.Wait()) }()
	for _, info := range infos {
		if info.Digest.Validate() != nil || info.Digest.Algorithm() != digest.SHA256 {
			continue
		}
		to := filepath.Join(blobs, info.Digest.Encoded())
		if local != nil {
			if from, ok := local.LocalBlob(info.Digest); ok {
				if err := linkTo(from, to); err != nil {
					return err
				}
				continue
			}
		}
		g.Go(func() error {
			if out.place.format == formatOCI {
				if done, err := reuse(gctx, blobPath(out.place.path, info.Digest), to, info); done || err != nil {
					return err
				}
			}
			if files != nil {
				if from, ok := files.BlobFile(gctx, info.Digest); ok {
					return linkTo(from, to)
				}
			}
			return nil
		})
	}
	return nil
}

// linkTo gives a blob a place in a layout, which may have it, unless it is in another file system.
func linkTo(from, to string) error {
	if err := os.Link(from, to); err != nil && !cannotLink(err) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// reuse links a blob of the old layout into the new one if it is intact, and tells whether it is there then.
func reuse(ctx context.Context, from, to string, info types.BlobInfo) (bool, error) {
	f, err := regularfile.Open(from)
	if err != nil {
		return false, nil // not there, or not usable: it will be fetched
	}
	defer f.Close()
	verifier := info.Digest.Verifier()
	n, err := io.Copy(verifier, ctxio.Reader{Ctx: ctx, R: f})
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil || !verifier.Verified() || info.Size >= 0 && n != info.Size {
		return false, nil
	}
	switch err := os.Link(from, to); {
	case err == nil || errors.Is(err, fs.ErrExist):
		return true, nil
	case cannotLink(err) || errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}

// allLayers are the layers of the image, or of every image of the index.
func allLayers(ctx context.Context, src types.ImageSource) ([]types.BlobInfo, error) {
	text, kind, err := image.UnparsedInstance(src, nil).Manifest(ctx)
	if err != nil {
		return nil, err
	}
	instances := []*digest.Digest{nil}
	if manifest.MIMETypeIsMultiImage(kind) {
		list, err := manifest.ListFromBlob(text, kind)
		if err != nil {
			return nil, err
		}
		instances = nil
		for _, d := range list.Instances() {
			instances = append(instances, &d)
		}
	}
	var infos []types.BlobInfo
	for _, d := range instances {
		text, kind, err := image.UnparsedInstance(src, d).Manifest(ctx)
		if err != nil {
			return nil, err
		}
		m, err := manifest.FromBlob(text, kind)
		if err != nil {
			return nil, err
		}
		for _, l := range m.LayerInfos() {
			infos = append(infos, l.BlobInfo)
		}
	}
	return infos, nil
}

// normalizeIndex writes the index of a staged layout as merges write it, so that the bytes do not tell which it was.
func normalizeIndex(layout string) error {
	index, err := readIndex(layout)
	if err != nil {
		return err
	}
	text, err := index.merge(&layoutIndex{})
	if err != nil {
		return err
	}
	path := filepath.Join(layout, indexFile)
	if err := os.Remove(path); err != nil {
		return err
	}
	return writeSync(path, text)
}

// sync brings everything staged to the disk that the library has not. Layers were synchronised when they were written.
func (out *output) sync() error {
	switch out.place.format {
	case formatOCI:
		return syncLayout(out.stage.join(stagedLayout))
	case formatDirectory:
		dir := out.stage.join(stagedFile)
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
	path := out.stage.join(stagedFile)
	mode, err := newFileMode(path + ".mode")
	if err != nil {
		return err
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	return syncFile(path)
}

// newFileMode is the mode that a file of this user has when nobody says otherwise. The umask itself can only be read by
// changing it, for all goroutines. There must be no file of that name.
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

// syncLayout synchronises the small files of a layout, which the library writes without doing so, and its directories.
func syncLayout(layout string) error {
	index, err := readIndex(layout)
	if err != nil {
		return err
	}
	if index == nil {
		return fmt.Errorf("%w: the staged layout has no index", fault.ErrInvalid)
	}
	files := []string{filepath.Join(layout, layoutFile)}
	for _, d := range index.descriptors {
		if err := d.Digest.Validate(); err != nil {
			return err
		}
		files = append(files, blobPath(layout, d.Digest))
		if d.MediaType == v1.MediaTypeImageIndex {
			instances, err := indexInstances(blobPath(layout, d.Digest))
			if err != nil {
				return err
			}
			for _, i := range instances {
				files = append(files, blobPath(layout, i))
			}
		}
	}
	for _, f := range files {
		if err := syncFile(f); err != nil {
			return err
		}
	}
	return errors.Join(atomicfs.SyncDir(filepath.Join(layout, blobsDir, digest.SHA256.String())), atomicfs.SyncDir(filepath.Join(layout, blobsDir)), atomicfs.SyncDir(layout))
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

// discard removes the stage, and directories that were made for it and are empty. After commit it does the same.
func (out *output) discard() error {
	var err error
	if out.stage != nil {
		err = out.stage.close()
	}
	if !out.done {
		removeEmpty(out.made)
	}
	return err
}
