package graphimage

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/layers"
)

// gzipLevel is part of the digest of the image.
const gzipLevel = 5

// writeLayer writes the members of an archive as a layer into a directory. Package layers has no times, which the data
// keeps: the layer is one that was written before.
func writeLayer(ctx context.Context, dir string, data *os.File, limits images.Limits) (*layers.Layer, error) {
	info, err := data.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limits.Compressed {
		return nil, limit.Errorf(limit.Compressed, limits.Compressed, "it has %d bytes", info.Size())
	}
	f, err := os.CreateTemp(dir, "graph-layer-")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	packed, plain := digest.SHA256.Digester(), digest.SHA256.Digester()
	z, err := gzip.NewWriterLevel(io.MultiWriter(f, packed.Hash()), gzipLevel)
	if err != nil {
		return nil, err
	}
	z.ModTime = time.Unix(0, 0) // no time in the header
	in, err := archive.Decompress(ctxio.Reader{Ctx: ctx, R: data}, v1.MediaTypeImageLayerGzip, info.Size())
	if err != nil {
		return nil, err
	}
	defer in.Close()
	bounded := archive.Bound(in, limits, info.Size(), new(int64))
	if err := copyMembers(io.MultiWriter(z, plain.Hash()), bounded, limits); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	blob := layers.Blob{Digest: packed.Digest(), DiffID: plain.Digest(), Size: info.Size(), Compression: layers.Gzip}
	open := func() (io.ReadCloser, error) { return os.Open(f.Name()) }
	return &layers.Layer{Name: "graph data", Finished: []layers.Finished{{Blob: blob, Open: open}}}, nil
}

// copyMembers copies an archive member by member. It must have files and directories only, and one file at least.
func copyMembers(w io.Writer, data io.Reader, limits images.Limits) error {
	to, from, files := tar.NewWriter(w), tar.NewReader(data), 0
	for n := 0; ; n++ {
		h, err := from.Next()
		switch {
		case err == io.EOF && files == 0:
			return fmt.Errorf("%w: there is no file in the archive", fault.ErrInvalid)
		case err == io.EOF:
			if _, err := io.Copy(io.Discard, data); err != nil { // up to the checksum
				return archive.Error(err)
			}
			return to.Close()
		case err != nil:
			return archive.Error(err)
		case n == limits.Entries:
			return limit.Errorf(limit.Entries, int64(limits.Entries), "more than %d members", limits.Entries)
		case h.Typeflag == tar.TypeXGlobalHeader: // such as git writes
			continue
		case h.Typeflag == tar.TypeReg:
			files++
		}
		if err := copyMember(to, h, from, limits); err != nil {
			return fmt.Errorf("%s: %w", fault.Quote(h.Name), err)
		}
	}
}

// copyMember copies one member: below the directory, owned by root, with its mode and time.
func copyMember(to *tar.Writer, h *tar.Header, content io.Reader, limits images.Limits) error {
	name, err := archive.EntryName(h)
	switch {
	case err != nil:
		return err
	case h.Typeflag != tar.TypeDir && (h.Typeflag != tar.TypeReg || name == ".") || archive.IsSparse(h):
		return fmt.Errorf("%w: it is neither a file nor a directory", fault.ErrInvalid)
	case strings.HasPrefix(path.Base(name), ".wh."):
		return fmt.Errorf("%w: its name is that of a whiteout, which removes files of an image", fault.ErrInvalid)
	case h.Size > limits.File:
		return limit.Errorf(limit.File, limits.File, "it has %d bytes", h.Size)
	}
	name = path.Join(directory, name)
	if h.Typeflag == tar.TypeDir {
		name += "/"
	}
	// Set-user-ID and set-group-ID bits have no use in data.
	if err := to.WriteHeader(&tar.Header{Typeflag: h.Typeflag, Name: name, Mode: h.Mode & 0o1777, Size: h.Size,
		ModTime: h.ModTime}); err != nil {
		return err
	}
	if _, err := io.Copy(to, content); err != nil {
		return archive.Error(err)
	}
	return nil
}
