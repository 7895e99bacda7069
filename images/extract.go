package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// ExtractOptions say what is read out of an image and what it may cost.
type ExtractOptions struct {
	Limits Limits
	// Temp is where a temporary file is made if the files do not fit into Limits.Memory; empty means the system's place.
	Temp string
}

// Extract reads the wanted paths, directories or files, out of the image's layers, as they are in the image: upper
// layers win, and what they have removed is gone. "." is the whole image. Only regular files and directories are taken;
// a link, device or FIFO at or above a wanted path is an error, and so is a name that leads out of the image or that two
// readers could understand differently. All layers are read to their ends and checked against digest, size and diffID before anything is returned.
//
// The tree is in memory up to a limit, the rest in one temporary file that its Close removes.
func (i *Image) Extract(ctx context.Context, wanted []string, o ExtractOptions) (_ *Tree, err error) {
	x := &extraction{
		limits: o.Limits.withDefaults(),
		tree:   newTree(newHeap(o.Limits.withDefaults().Memory, o.Temp)),
	}
	for _, w := range wanted {
		clean := strings.TrimPrefix(path.Clean("/"+w), "/")
		if strings.Contains(w, "..") || !validText(w) {
			return nil, fmt.Errorf("%w: path %.200q leaves the image root", ErrInvalid, w)
		}
		x.wanted = append(x.wanted, clean)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.tree.Close())
		}
	}()
	var compressed int64
	for _, l := range i.Layers {
		if compressed += l.Size; compressed > x.limits.Compressed || compressed < 0 {
			return nil, fmt.Errorf("%w: the layers have more than %d bytes", ErrLimit, x.limits.Compressed)
		}
	}
	// From the top: what is covered or removed by an upper layer is passed over without being kept.
	for n, l := range slices.Backward(i.Layers) {
		if err := i.extractLayer(ctx, x, n, l); err != nil {
			return nil, fmt.Errorf("layer %d (%s): %w", n, l.Digest, err)
		}
	}
	return x.tree, x.tree.seal()
}

func (i *Image) extractLayer(ctx context.Context, x *extraction, n int, l v1.Descriptor) (err error) {
	r, err := i.blob(ctx, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	plain, err := decompress(r, l.MediaType)
	if err != nil {
		return err
	}
	defer plain.Close()
	counted := &budget{r: plain, x: x, compressed: l.Size}
	return x.layer(newVerifier(counted, i.Config.RootFS.DiffIDs[n], -1))
}

// budget enforces the limits of decompressed bytes.
type budget struct {
	r          io.Reader
	x          *extraction
	compressed int64
	n          int64
}

func (b *budget) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	b.x.uncompressed += int64(n)
	if b.x.uncompressed > b.x.limits.Uncompressed {
		return 0, fmt.Errorf("%w: more than %d bytes uncompressed", ErrLimit, b.x.limits.Uncompressed)
	}
	if b.n > ratioBeyond && b.n/maxRatio > b.compressed {
		return 0, fmt.Errorf("%w: uncompressed more than %d times as long as compressed", ErrLimit, maxRatio)
	}
	return n, err
}

// extraction is one run of [Image.Extract].
type extraction struct {
	limits       Limits
	wanted       []string
	tree         *Tree
	entries      int
	uncompressed int64
}

// layer reads one archive, down from the top of the image, to its end.
func (x *extraction) layer(r io.Reader) error {
	l := &layerNames{kinds: map[string]byte{}}
	end := &endReader{r: r}
	tr := tar.NewReader(end)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return archiveError(err)
		}
		if x.entries++; x.entries > x.limits.Entries {
			return fmt.Errorf("%w: more than %d entries", ErrLimit, x.limits.Entries)
		}
		if err := x.entry(l, h, tr); err != nil {
			return err
		}
	}
	if err := end.finish(); err != nil {
		return err
	}
	x.tree.cover(l)
	return nil
}

func archiveError(err error) error {
	switch {
	case errors.Is(err, ErrIntegrity), errors.Is(err, ErrLimit), errors.Is(err, ErrInvalid), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: unexpected end of the archive", ErrIntegrity)
	}
	return fmt.Errorf("%w: archive: %w", ErrInvalid, err)
}

// entry takes one entry if it is wanted.
func (x *extraction) entry(l *layerNames, h *tar.Header, content io.Reader) error {
	name, err := entryName(h)
	if err != nil {
		return err
	}
	if isSparse(h) {
		return fmt.Errorf("%w: %.200q is a sparse file", ErrLimit, name)
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return fmt.Errorf("%w: the archive root is not a directory", ErrInvalid)
		}
		return nil
	}
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if hidden, ok := strings.CutPrefix(base, ".wh."); ok {
		return x.whiteout(l, name, dir, hidden)
	}
	wanted, above := x.relevant(name)
	if !wanted && !above {
		return nil
	}
	if strings.Contains(name, `\`) {
		return fmt.Errorf("%w: backslash in the name %.200q", ErrInvalid, name)
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeSymlink:
		return fmt.Errorf("%w: symlink %.200q", ErrInvalid, name)
	case tar.TypeLink:
		return fmt.Errorf("%w: hard link %.200q", ErrInvalid, name)
	case tar.TypeChar, tar.TypeBlock:
		return fmt.Errorf("%w: device %.200q", ErrInvalid, name)
	case tar.TypeFifo:
		return fmt.Errorf("%w: FIFO %.200q", ErrInvalid, name)
	default:
		return fmt.Errorf("%w: %.200q has the unknown entry type %q", ErrInvalid, name, h.Typeflag)
	}
	if err := l.add(name, h.Typeflag); err != nil {
		return err
	}
	if !wanted || x.tree.covered(name) {
		return nil
	}
	if h.Typeflag == tar.TypeDir {
		return x.tree.addDir(name)
	}
	if h.Size > x.limits.File {
		return fmt.Errorf("%w: %.200q has %d bytes (limit %d)", ErrLimit, name, h.Size, x.limits.File)
	}
	return archiveOrNil(x.tree.addFile(name, h.Size, content))
}

func archiveOrNil(err error) error {
	if err == nil {
		return nil
	}
	return archiveError(err)
}

// relevant tells whether a name is wanted or above a wanted one.
func (x *extraction) relevant(name string) (wanted, above bool) {
	for _, w := range x.wanted {
		if w == "" || name == w || strings.HasPrefix(name, w+"/") {
			return true, false
		}
		above = above || strings.HasPrefix(w, name+"/")
	}
	return false, above
}

// whiteout notes what lower layers have no more.
func (x *extraction) whiteout(l *layerNames, name, dir, hidden string) error {
	const opaque = ".wh..opq"
	if hidden == opaque {
		if wanted, above := x.relevant(dir); dir == "" || wanted || above {
			l.opaque = append(l.opaque, dir)
		}
		return nil
	}
	if hidden == "" || hidden == "." || hidden == ".." {
		return fmt.Errorf("%w: invalid whiteout %.200q", ErrInvalid, name)
	}
	if strings.HasPrefix(hidden, ".wh.") {
		return nil // bookkeeping of other tools
	}
	target := path.Join(dir, hidden)
	if wanted, above := x.relevant(target); wanted || above {
		l.removed = append(l.removed, target)
	}
	return nil
}
