package layouts

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
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/imagefs"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// localBlobs and fileBlobs are interfaces of sources; see images.LocalBlobs and images.FileBlobs.
type (
	localBlobs interface {
		LocalBlob(d digest.Digest) (path string, ok bool)
	}
	fileBlobs interface {
		BlobFile(ctx context.Context, d digest.Digest) (path string, ok bool)
	}
)

// filesAtOnce is how many blobs are prepared concurrently: they wait for the disk more than for the processor.
const filesAtOnce = 4

// Output is an image in files that is written to a stage and then put in its place.
type Output struct {
	place Place
	stage *Stage
	made  []string
	done  bool
	// within tells that the stage has what is added to an image that is at the place, and not the image.
	within bool
	writer *Writer // nil without attachments
}

// StagedFile is the name in its stage of an output that is one file or one plain directory.
const StagedFile = "out"

// NewOutput makes a stage for a place, and links those blobs into it that are files already. The caller copies the
// image to [Output.Reference], calls [Output.Finish] and [Output.Commit], and in any case [Output.Discard].
func NewOutput(ctx context.Context, p Place, src types.ImageSource) (_ *Output, err error) {
	in, err := p.StageDir()
	if err != nil {
		return nil, err
	}
	out := &Output{place: p}
	if out.made, err = Parents(in); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Discard())
		}
	}()
	if out.stage, err = NewStage(ctx, in); err != nil {
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
func (out *Output) isLayout() bool {
	return out.place.Format == OCI || out.place.Format == OCIArchive
}

// Reference returns where to copy the image.
func (out *Output) Reference() (types.ImageReference, error) {
	if out.isLayout() {
		return out.place.reference(out.stage.Join(stagedLayout))
	}
	return out.place.reference(out.stage.Join(StagedFile))
}

// Finish completes the staged image and synchronises it.
func (out *Output) Finish(ctx context.Context) error {
	layout := out.stage.Join(stagedLayout)
	if out.writer != nil {
		if err := out.writer.flush(); err != nil {
			return err
		}
	}
	if out.isLayout() {
		if err := normalizeIndex(layout); err != nil {
			return err
		}
	}
	if out.within {
		return syncLayout(layout)
	}
	if out.place.Format == OCIArchive {
		if err := archiveLayout(ctx, layout, out.stage.Join(StagedFile)); err != nil {
			return err
		}
	}
	return out.sync()
}

// check returns an error if the output exists and is not of its format.
func (out *Output) check() error {
	info, err := LstatOutput(out.place.Path)
	if err != nil || info == nil {
		return err
	}
	switch out.place.Format {
	case OCI:
		index, err := ReadIndex(out.place.Path)
		if err != nil {
			return err
		}
		if index == nil {
			return checkUsable(out.place.Path)
		}
		return checkLayout(out.place.Path)
	case Directory:
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
	} else if err := imagefs.CheckPlain(head[:n]); err != nil {
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

// provide makes a staged layout and links the blobs into it that the source has as files or that the layout at the
// place has already.
func (out *Output) provide(ctx context.Context, src types.ImageSource) (err error) {
	layout := out.stage.Join(stagedLayout)
	blobs := filepath.Join(layout, blobsDir, digest.SHA256.String())
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	local, _ := src.(localBlobs)
	files, _ := src.(fileBlobs)
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
			if out.place.Format == OCI {
				if done, err := reuse(gctx, BlobPath(out.place.Path, info.Digest), to, info); done || err != nil {
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

// linkTo links a blob into a layout, unless it is there or in another file system.
func linkTo(from, to string) error {
	if err := os.Link(from, to); err != nil && !cannotLink(err) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// reuse links a blob of the old layout into the new one if it is intact, and tells whether it did.
func reuse(ctx context.Context, from, to string, info types.BlobInfo) (bool, error) {
	f, err := regularfile.Open(from)
	if err != nil {
		return false, nil // missing or not readable: it is copied
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

// allLayers returns the layers of the image, or of all images of the index.
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

// normalizeIndex writes the index of a staged layout in the form that merges have.
func normalizeIndex(layout string) error {
	index, err := ReadIndex(layout)
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
	return WriteSync(path, text)
}

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
