package images

import (
	"archive/tar"
	"context"
	"io"

	"github.com/operator-bindery/bindery/images/internal/imagefs"
)

// ExtractOptions bound what is read out of an image.
type ExtractOptions struct {
	Limits Limits
	// Temp is the directory of a temporary file if the files do not fit into Limits.Memory; empty means the system's.
	Temp string
}

// Extract returns the wanted files and directories of the image, as a container sees them: upper layers replace and
// remove what lower ones have. "." is the whole image. Only regular files and directories can be extracted: a link,
// device or FIFO at or above a wanted path is an error, and so is a name that leads out of the image or that two
// readers could understand differently.
//
// Layers are read from the top, and only as long as something wanted can still come from the next one. Each layer that
// is read is read to its end and compared with its digest, size and diffID before Extract returns.
//
// The caller must close the tree. What does not fit into Limits.Memory is in one temporary file without a name until
// then.
func (i *Image) Extract(ctx context.Context, wanted []string, o ExtractOptions) (*Tree, error) {
	ctx, cancel := i.opened.withTimeout(ctx)
	defer cancel()
	return i.layerStack().Extract(ctx, wanted, o.Limits, o.Temp)
}

// CopyFile writes one regular file of the image to w and returns its size. The error is [fs.ErrNotExist] if there is
// none. It is for a file that need not fit into memory or a temporary file, such as a database; Limits.File is 1 GiB by
// default.
//
// The file is written while its layer is read: after an error, discard what was written, as it may not have the layer's
// digest.
func (i *Image) CopyFile(ctx context.Context, name string, w io.Writer, o ExtractOptions) (size int64, err error) {
	if o.Limits.File == 0 {
		o.Limits.File = 1 << 30
	}
	ctx, cancel := i.opened.withTimeout(ctx)
	defer cancel()
	return i.layerStack().CopyFile(ctx, name, w, o.Limits, o.Temp)
}

// Tree is an fs.FS of what was extracted from an image; see [Image.Extract]. It also is an fs.ReadDirFS and an
// fs.StatFS. Modes are 0644 and 0755, times are zero. It is safe for concurrent use until Close.
type Tree = imagefs.Tree

func (i *Image) layerStack() *imagefs.Layers {
	return &imagefs.Layers{Layers: i.Layers, DiffIDs: i.Config.RootFS.DiffIDs, Open: i.open, Slow: i.opened.inRegistry()}
}

// LayerReader reads layers entry by entry, without applying them to each other. Its limits hold for all layers together
// that it reads. It is not safe for concurrent use.
type LayerReader struct{ r *imagefs.Reader }

// NewLayerReader returns a reader within limits.
func NewLayerReader(l Limits) *LayerReader { return &LayerReader{imagefs.NewReader(l)} }

// Read calls take for each entry of layer n of the image, with its clean name relative to the root ("." for the root
// itself) and, for a regular file, its content. It returns the length of the archive in bytes.
//
// The layer is read to its end and compared with its digest, size and diffID; after an error, discard what take
// received. Names that lead out of the image and sparse files are errors; links, devices and whiteouts are passed on.
// An error of take ends the reading.
func (r *LayerReader) Read(ctx context.Context, i *Image, n int,
	take func(name string, h *tar.Header, content io.Reader) error) (size int64, err error) {
	ctx, cancel := i.opened.withTimeout(ctx)
	defer cancel()
	return r.r.Read(ctx, i.layerStack(), n, take)
}
