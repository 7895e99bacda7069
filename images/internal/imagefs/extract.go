package imagefs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Layers are the layers of an image.
type Layers struct {
	// Layers and DiffIDs have the same length, the lowest layer first.
	Layers  []v1.Descriptor
	DiffIDs []digest.Digest
	// Open returns the content of a layer. Reading it to its end fails if it has another digest or size.
	Open func(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
	// Slow makes Extract read small layers concurrently and ahead, since each takes a round trip.
	Slow bool
}

// Extract returns the files and directories at the wanted paths, within limits. If they do not fit into limits.Memory,
// the rest is in a file without a name in temp, or in the system's directory for temporary files if temp is empty.
func (s *Layers) Extract(ctx context.Context, wanted []string, limits limit.Limits, temp string) (_ *Tree, err error) {
	limits = limits.WithDefaults()
	x := &extraction{limits: limits, tree: newTree(newHeap(limits.Memory, temp))}
	if x.wanted, err = cleanWanted(wanted); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.tree.Close())
		}
	}()
	x.ahead = s.Slow
	if err := s.read(ctx, x); err != nil {
		return nil, err
	}
	x.tree.seal()
	return x.tree, nil
}

// CopyFile writes one regular file to w while its layer is read, and returns its size.
func (s *Layers) CopyFile(ctx context.Context, name string, w io.Writer, limits limit.Limits,
	temp string) (size int64, err error) {
	wanted, err := cleanWanted([]string{name})
	if err != nil {
		return 0, err
	}
	found := false
	x := &extraction{limits: limits.WithDefaults(), wanted: wanted, tree: newTree(newHeap(0, temp))}
	x.sink = func(r io.Reader) (err error) {
		found = true
		size, err = io.Copy(w, r)
		return err
	}
	if err := s.read(ctx, x); err != nil {
		return size, err
	}
	switch n, ok := x.tree.nodes[wanted[0]]; {
	case found:
		return size, nil
	case ok && n.IsDir():
		return 0, fmt.Errorf("%w: %.200q is a directory and no file", fault.ErrInvalid, name)
	}
	return 0, &fs.PathError{Op: "open", Path: wanted[0], Err: fs.ErrNotExist}
}

// cleanWanted makes paths relative to the root of the image. The root itself becomes empty.
func cleanWanted(wanted []string) (clean []string, err error) {
	if len(wanted) > limit.MaxWanted {
		return nil, fmt.Errorf("%w: %d paths of an image are wanted (limit %d)", fault.ErrLimit, len(wanted),
			limit.MaxWanted)
	}
	for _, w := range wanted {
		c, err := archive.CleanPath(w)
		if err != nil {
			return nil, err
		}
		clean = append(clean, c)
	}
	return clean, nil
}

// read reads layers from the top until lower ones have nothing that is wanted.
func (s *Layers) read(ctx context.Context, x *extraction) error {
	for _, l := range s.Layers {
		if err := x.fits(l); err != nil {
			return err
		}
	}
	var ahead prefetch
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		ahead.running.Wait()
	}()
	if x.ahead && !x.complete() {
		ahead.start(ctx, s)
	}
	for n := range slices.Backward(s.Layers) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if x.complete() {
			return nil
		}
		names := &layerNames{kinds: map[string]byte{}}
		_, err := s.readLayer(ctx, x, &ahead, n, func(name string, h *tar.Header, content io.Reader) error {
			return x.entry(names, name, h, content)
		})
		if err != nil {
			return err
		}
		x.tree.cover(names)
	}
	return nil
}

// complete tells whether lower layers can have nothing more that is wanted.
func (x *extraction) complete() bool {
	return !slices.ContainsFunc(x.wanted, func(w string) bool { return !x.tree.isHidden(w) })
}

// readLayer reads one layer, and returns its uncompressed size.
func (s *Layers) readLayer(ctx context.Context, x *extraction, ahead *prefetch, n int,
	take func(name string, h *tar.Header, content io.Reader) error) (size int64, err error) {
	l := s.Layers[n]
	defer func() {
		if err != nil {
			err = fmt.Errorf("layer %d (%s): %w", n, l.Digest, err)
		}
	}()
	blob, err := ahead.open(ctx, s, n)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	return x.layer(blob, l, s.DiffIDs[n], take)
}

// Reader reads layers entry by entry, without applying them to each other. The limits hold for all layers together that
// it reads. It is not safe for concurrent use.
type Reader struct{ x extraction }

// NewReader returns a reader within limits.
func NewReader(l limit.Limits) *Reader { return &Reader{extraction{limits: l.WithDefaults()}} }

// Read calls take for each entry of layer n; see images.LayerReader.
func (r *Reader) Read(ctx context.Context, s *Layers, n int,
	take func(name string, h *tar.Header, content io.Reader) error) (size int64, err error) {
	if err := r.x.fits(s.Layers[n]); err != nil {
		return 0, fmt.Errorf("layer %d (%s): %w", n, s.Layers[n].Digest, err)
	}
	return s.readLayer(ctx, &r.x, &prefetch{}, n, take)
}

// explainFailure returns the error to report for an invalid layer: if its digest does not match either, that is the
// cause.
func explainFailure(err error, rest io.Reader) error {
	if errors.Is(err, fault.ErrInvalid) || errors.Is(err, fault.ErrIntegrity) {
		if _, other := io.CopyN(io.Discard, rest, maxBlame); errors.Is(other, fault.ErrIntegrity) {
			return other
		}
	}
	return err
}

// maxBlame is how much of an invalid layer is read to compare its digest.
const maxBlame = 64 << 20

// extraction is one reading of [Layers].
type extraction struct {
	// ahead makes small layers be read ahead.
	ahead bool
	// sink, unless nil, receives the content of the only wanted file.
	sink func(io.Reader) error

	limits       limit.Limits
	wanted       []string
	tree         *Tree
	entries      int
	compressed   int64
	uncompressed int64
}

// fits counts the size of a layer.
func (x *extraction) fits(l v1.Descriptor) error {
	if x.compressed += l.Size; x.compressed > x.limits.Compressed || x.compressed < 0 {
		return limit.Errorf(limit.Compressed, x.limits.Compressed, "the layers have more than %d bytes",
			x.limits.Compressed)
	}
	return nil
}

// layer reads the archive of a layer to its end, and returns its uncompressed size. Errors of the content that take
// reads have their class.
func (x *extraction) layer(blob io.Reader, l v1.Descriptor, diffID digest.Digest,
	take func(name string, h *tar.Header, content io.Reader) error) (int64, error) {
	before := x.uncompressed
	read := func() error {
		plain, err := archive.Decompress(blob, l.MediaType, l.Size)
		if err != nil {
			return err
		}
		defer plain.Close()
		counted := archive.Bound(plain, x.limits, l.Size, &x.uncompressed)
		return x.archive(verify.NewReader(counted, diffID, -1), take)
	}
	err := explainFailure(read(), blob)
	return x.uncompressed - before, err
}

func (x *extraction) archive(in io.Reader, take func(string, *tar.Header, io.Reader) error) error {
	end := &endReader{r: in}
	tr := tar.NewReader(end)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return end.finish()
		}
		if err != nil {
			return end.archiveError(err)
		}
		if x.entries++; x.entries > x.limits.Entries {
			return limit.Errorf(limit.Entries, int64(x.limits.Entries), "more than %d entries", x.limits.Entries)
		}
		name, err := archive.EntryName(h)
		if err != nil {
			return err
		}
		if archive.IsSparse(h) {
			return fmt.Errorf("%w: %.200q is a sparse file", fault.ErrLimit, name)
		}
		if err := take(name, h, contentReader{tr}); err != nil {
			return err
		}
	}
}

// contentReader classifies errors of reading an archive.
type contentReader struct{ r io.Reader }

func (c contentReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && err != io.EOF {
		err = archive.Error(err)
	}
	return n, err
}

// entry reads one entry if it is wanted.
func (x *extraction) entry(l *layerNames, name string, h *tar.Header, content io.Reader) error {
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return fmt.Errorf("%w: the archive root is not a directory", fault.ErrInvalid)
		}
		return nil
	}
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	for part := range strings.SplitSeq(dir, "/") {
		if strings.HasPrefix(part, ".wh..wh.") {
			return nil // metadata of aufs and the like
		}
		if strings.HasPrefix(part, ".wh.") {
			return fmt.Errorf("%w: %.200q is below a whiteout", fault.ErrInvalid, name)
		}
	}
	if hidden, ok := strings.CutPrefix(base, ".wh."); ok {
		return x.whiteout(l, name, dir, hidden)
	}
	wanted, above := x.relevant(name)
	if !wanted && !above {
		return nil
	}
	if strings.Contains(name, `\`) {
		return fmt.Errorf("%w: backslash in the name %.200q", fault.ErrInvalid, name)
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeSymlink:
		return fmt.Errorf("%w: symlink %.200q", fault.ErrInvalid, name)
	case tar.TypeLink:
		return fmt.Errorf("%w: hard link %.200q", fault.ErrInvalid, name)
	case tar.TypeChar, tar.TypeBlock:
		return fmt.Errorf("%w: device %.200q", fault.ErrInvalid, name)
	case tar.TypeFifo:
		return fmt.Errorf("%w: FIFO %.200q", fault.ErrInvalid, name)
	default:
		return fmt.Errorf("%w: %.200q has the unknown entry type %q", fault.ErrInvalid, name, h.Typeflag)
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
		return limit.Errorf(limit.File, x.limits.File, "%.200q has %d bytes", name, h.Size)
	}
	if x.sink != nil {
		if name != x.wanted[0] {
			return x.tree.addDir(path.Dir(name)) // the wanted name is a directory
		}
		if x.tree.upper[name] {
			return nil // an upper layer has a directory here
		}
		return x.sink(content)
	}
	return x.tree.addFile(name, h.Size, content)
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

// whiteout records what the layer removes from lower layers.
func (x *extraction) whiteout(l *layerNames, name, dir, hidden string) error {
	const opaque = ".wh..opq"
	if hidden == opaque {
		if wanted, above := x.relevant(dir); dir == "" || wanted || above {
			l.opaque = append(l.opaque, dir)
		}
		return nil
	}
	if hidden == "" || hidden == "." || hidden == ".." {
		return fmt.Errorf("%w: invalid whiteout %.200q", fault.ErrInvalid, name)
	}
	if strings.HasPrefix(hidden, ".wh.") {
		return nil // metadata of aufs and the like
	}
	target := path.Join(dir, hidden)
	if wanted, above := x.relevant(target); wanted || above {
		l.removed = append(l.removed, target)
	}
	return nil
}
