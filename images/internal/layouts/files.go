package layouts

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/verify"
)

// fileStore has the files of an image. Its methods are safe for concurrent use.
type fileStore interface {
	// open opens a regular file and returns its size. The error is [fs.ErrNotExist] if there is none.
	open(name string) (io.ReadSeekCloser, int64, error)
	io.Closer
}

// openFiles opens the directory or the archive of a place.
func openFiles(ctx context.Context, p transport.Destination, limits limit.Limits, temp string) (fileStore, error) {
	if p.Transport == transport.OCI || p.Transport == transport.Directory {
		return openDirFiles(p.Path)
	}
	return openTarFiles(ctx, p.Path, limits, temp)
}

// blobFiles are files that are blobs, each in the file that name returns for its digest.
type blobFiles struct {
	files fileStore
	name  func(digest.Digest) string
}

// HasBlob tells whether there is a file for the blob, of its size, whatever its content.
func (b blobFiles) HasBlob(_ context.Context, d v1.Descriptor) (bool, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return false, err
	}
	f, size, err := b.files.open(b.name(d.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return size == d.Size, f.Close()
}

// Blob opens a blob at an offset. From the start, the reader fails at its end if the digest or the size differs from
// the descriptor.
func (b blobFiles) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, err
	}
	f, size, err := b.files.open(b.name(d.Digest))
	if err != nil {
		return nil, err
	}
	return store.ReadAt(ctx, d, f, size, from)
}

// dirFiles are the files in a directory. Links out of it are errors.
type dirFiles struct{ root *os.Root }

func openDirFiles(dir string) (*dirFiles, error) {
	// Opening a FIFO would block.
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a directory", fault.ErrInvalid, dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &dirFiles{root}, nil
}

func (d *dirFiles) Close() error { return d.root.Close() }

func (d *dirFiles) open(name string) (io.ReadSeekCloser, int64, error) {
	name = filepath.FromSlash(name)
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%w: %s is not a regular file", fault.ErrInvalid, filepath.Join(d.root.Name(), name))
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// tarFiles are the files in an archive, read in place.
type tarFiles struct {
	io.Closer
	file    *os.File
	entries map[string]tarEntry
}

// tarEntry is the content of a file of an archive, or the name of the entry that it links to.
type tarEntry struct {
	at, size int64
	link     string
}

// openTarFiles reads the headers of an archive. An archive that is compressed as a whole is first decompressed into a
// temporary file, within the limits.
func openTarFiles(ctx context.Context, name string, limits limit.Limits, temp string) (_ *tarFiles, err error) {
	f, err := regularfile.OpenSeekable(name)
	if err != nil {
		return nil, err
	}
	t := &tarFiles{Closer: f, file: f, entries: map[string]tarEntry{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	head := make([]byte, 8)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if codec := archive.Codec(head[:n]); codec != "" {
		plain, err := decompressedFile(ctx, f, codec, limits, temp)
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, errors.Join(err, plain.Close())
		}
		t.Closer, t.file = plain, plain.File
		if n, err = plain.ReadAt(head, 0); err != nil && err != io.EOF {
			return nil, err
		}
		if again := archive.Codec(head[:n]); again != "" {
			return nil, fmt.Errorf("%w: compressed twice: %s inside of %s: decompress it", fault.ErrInvalid, again, codec)
		}
	}
	return t, t.index(ctx, limits)
}

// decompressedFile returns a file without a name that has the decompressed content.
func decompressedFile(ctx context.Context, f *os.File, codec string, limits limit.Limits,
	temp string) (_ *atomicfs.Scratch, err error) {
	mediaType := map[string]string{"gzip": v1.MediaTypeImageLayerGzip, "zstd": v1.MediaTypeImageLayerZstd}[codec]
	if mediaType == "" {
		return nil, archive.PackedError(codec)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	out, err := atomicfs.NewScratch(temp, "bindery-archive-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Close())
		}
	}()
	defer guard.Recover(&err)
	plain, err := archive.Decompress(bufio.NewReader(ctxio.Reader{Ctx: ctx, R: f}), mediaType, -1)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	counted := archive.Bound(plain, limits, info.Size(), new(int64))
	if _, err = io.Copy(out, counted); err != nil {
		return nil, archive.Error(err)
	}
	_, err = out.Seek(0, io.SeekStart)
	return out, err
}

func (t *tarFiles) index(ctx context.Context, limits limit.Limits) error {
	tr := tar.NewReader(t.file)
	for n := 0; ; n++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return archive.Error(err)
		}
		if n >= limits.Entries {
			return limit.Errorf(limit.Entries, int64(limits.Entries), "the archive has more than %d entries",
				limits.Entries)
		}
		name, err := archive.EntryName(h)
		if err != nil {
			return err
		}
		if archive.IsSparse(h) {
			return fmt.Errorf("%w: %.200q is a sparse file", fault.ErrLimit, name)
		}
		entry := tarEntry{size: h.Size}
		switch h.Typeflag {
		case tar.TypeDir:
			continue
		case tar.TypeReg:
			// The reader has read exactly up to the end of the header.
			if entry.at, err = t.file.Seek(0, io.SeekCurrent); err != nil {
				return err
			}
		case tar.TypeSymlink:
			entry.link = path.Join(path.Dir(name), h.Linkname)
		case tar.TypeLink:
			entry.link = path.Clean(h.Linkname)
		default:
			return fmt.Errorf("%w: %.200q is neither a file nor a directory", fault.ErrInvalid, name)
		}
		if _, twice := t.entries[name]; twice {
			return fmt.Errorf("%w: %.200q appears twice", fault.ErrInvalid, name)
		}
		t.entries[name] = entry
	}
}

// open follows one link, as docker's archives have for layers that occur twice.
func (t *tarFiles) open(name string) (io.ReadSeekCloser, int64, error) {
	e, ok := t.entries[name]
	if ok && e.link != "" {
		if e, ok = t.entries[e.link]; ok && e.link != "" {
			return nil, 0, fmt.Errorf("%w: %.200q is a link to a link", fault.ErrInvalid, name)
		}
	}
	if !ok {
		return nil, 0, &fs.PathError{Op: "open", Path: t.file.Name() + ":" + name, Err: fs.ErrNotExist}
	}
	return tarFile{io.NewSectionReader(t.file, e.at, e.size)}, e.size, nil
}

// tarFile is a file of an archive, which stays open.
type tarFile struct{ *io.SectionReader }

func (tarFile) Close() error { return nil }
