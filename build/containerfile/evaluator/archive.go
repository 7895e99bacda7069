//go:build !nobuildah

package evaluator

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/layers"
)

// Limits of an archive that ADD unpacks.
const (
	maxArchive        = 8 << 30 // bytes uncompressed
	maxArchiveEntries = 200_000
	maxArchiveXattrs  = 16 << 20
	maxPath           = 4096 // bytes of a name
	maxRatio          = 1000 // uncompressed bytes per compressed byte, checked beyond ratioBeyond
	ratioBeyond       = 64 << 20
)

// archive unpacks a file into dest if it is an archive: a tar file, plain or compressed with gzip, bzip2, xz or zstd.
func (c *copying) archive(f found, dest string) (unpacked bool, err error) {
	r, err := openArchive(c.ctx, f.n)
	if err != nil || r == nil {
		return false, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	h, err := r.tar.Next()
	if errors.Is(err, layers.ErrChanged) || errors.Is(err, errLimit) {
		return false, err
	}
	if err != nil {
		return false, nil // not an archive, or an empty one: it is copied as a file
	}
	at, err := walk(c.ctx, c.x.root, dest, true, c.newDir)
	if err != nil {
		return false, err
	}
	if !at.node().isDir() {
		return false, fmt.Errorf("destination %.200q exists and is not a directory", dest)
	}
	u := &unpacking{c: c, root: at.node(), base: at.path(), made: map[*node]bool{}, compressed: f.n.size}
	for ; err == nil; h, err = r.tar.Next() {
		if err := u.entry(h, r.tar); err != nil {
			return true, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	if err != io.EOF {
		return true, fmt.Errorf("%s: %w", f.path, err)
	}
	c.count++
	return true, nil
}

// archiveReader reads an archive within limits.
type archiveReader struct {
	tar    *tar.Reader
	closes []func() error
}

func (r *archiveReader) close() error {
	var err error
	for i := len(r.closes) - 1; i >= 0; i-- {
		err = errors.Join(err, r.closes[i]())
	}
	return err
}

// openArchive returns nil for a file that cannot be an archive.
func openArchive(ctx context.Context, n *node) (_ *archiveReader, err error) {
	if n.data == nil || n.size < 16 {
		return nil, nil
	}
	if err := fetchAll(ctx, []*node{n}); err != nil {
		return nil, err
	}
	raw, err := n.data.open()
	if err != nil {
		return nil, err
	}
	r := &archiveReader{closes: []func() error{raw.Close}}
	in := bufio.NewReaderSize(ctxio.Reader{Ctx: ctx, R: raw}, 64<<10)
	plain, err := r.decompress(in)
	if err != nil {
		return nil, r.close() // the file has the magic number of a compression and is not compressed
	}
	r.tar = tar.NewReader(&bounded{r: plain, compressed: n.size})
	return r, nil
}

func (r *archiveReader) decompress(in *bufio.Reader) (io.Reader, error) {
	head, err := in.Peek(6)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		r.closes = append(r.closes, z.Close)
		return z, nil
	case bytes.HasPrefix(head, []byte("BZh")):
		return bzip2.NewReader(in), nil
	case bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return xz.ReaderConfig{DictCap: 64 << 20}.NewReader(in)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		r.closes = append(r.closes, func() error { z.Close(); return nil })
		return z, nil
	}
	return in, nil
}

// bounded is a reader that enforces the size and ratio limits of an archive.
type bounded struct {
	r             io.Reader
	compressed, n int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.n += int64(n); b.n > maxArchive {
		return 0, fmt.Errorf("%w: the archive has more than %d bytes", errLimit, int64(maxArchive))
	}
	if b.n > ratioBeyond && b.n/maxRatio > b.compressed {
		return 0, fmt.Errorf("%w: the archive is more than %d times larger than its compressed form", errLimit,
			maxRatio)
	}
	return n, err
}

// unpacking extracts the entries of an archive into a directory of the stage.
type unpacking struct {
	c          *copying
	root       *node
	base       string         // the path of root in the stage
	made       map[*node]bool // links from the archive
	n          int
	size       int64 // of all files including holes, and of hard links
	xattrs     int
	compressed int64 // length of the archive
}

func (u *unpacking) entry(h *tar.Header, data io.Reader) error {
	if u.n++; u.n > maxArchiveEntries {
		return fmt.Errorf("%w: more than %d entries", errLimit, maxArchiveEntries)
	}
	name := h.Name
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return fmt.Errorf("entry %.200q leads out of the archive", name)
		}
	}
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("entry %.200q has an invalid name", name)
	}
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	if clean == "" {
		return nil
	}
	if len(clean) > maxPath || len(h.Linkname) > maxPath {
		return fmt.Errorf("%w: entry %.200q has a name of more than %d bytes", errLimit, name, maxPath)
	}
	if err := u.c.x.e.grow(1); err != nil {
		return err
	}
	dir, err := u.dir(path.Dir(clean))
	if err != nil {
		return fmt.Errorf("entry %.200q: %w", name, err)
	}
	n := &node{mode: modeOf(h.Mode), uid: h.Uid, gid: h.Gid, xattrs: xattrs(h)}
	for key, value := range n.xattrs {
		if u.xattrs += len(key) + len(value); u.xattrs > maxArchiveXattrs {
			return fmt.Errorf("%w: more than %d bytes of extended attributes", errLimit, maxArchiveXattrs)
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		n.kind, n.children = layers.KindDir, map[string]*node{}
	case tar.TypeReg, tar.TypeGNUSparse:
		if err := u.grow(h.Size); err != nil {
			return err
		}
		n.kind, n.size = layers.KindFile, h.Size
		if n.data, err = u.c.x.e.spool.add(u.c.ctx, data, h.Size); err != nil {
			return fmt.Errorf("entry %.200q: %w", name, err)
		}
	case tar.TypeSymlink:
		n.kind, n.mode, n.link = layers.KindSymlink, fs.ModePerm, h.Linkname
		u.made[n] = true
	case tar.TypeLink:
		to, err := u.linked(h.Linkname)
		if err != nil {
			return fmt.Errorf("entry %.200q: %w", name, err)
		}
		if err := u.grow(to.size); err != nil { // the layer stores a copy
			return err
		}
		same := *to
		n = &same
	case tar.TypeXGlobalHeader:
		return nil
	default:
		return fmt.Errorf("entry %.200q is neither a file, a directory nor a link", name)
	}
	return setEntry(u.c.ctx, dir, path.Base(clean), n)
}

// grow adds n bytes to the size of the unpacked files. The files can be larger than the archive's stream: sparse files
// have holes, and each hard link is stored as a copy.
func (u *unpacking) grow(n int64) error {
	if n > maxArchive-u.size {
		return fmt.Errorf("%w: the files of the archive have more than %d bytes", errLimit, int64(maxArchive))
	}
	u.size += n
	if most := max(u.compressed, ratioBeyond/maxRatio); u.size/maxRatio > most {
		return fmt.Errorf("%w: the files of the archive are more than %d times larger than the archive", errLimit,
			maxRatio)
	}
	return nil
}

// dir returns the directory of an entry and creates it if needed. Its path may lead through symbolic links of the image
// but not through those of the archive: an archive could write anywhere with them.
func (u *unpacking) dir(name string) (*node, error) {
	for at, c := range name + "/" {
		if c != '/' {
			continue
		}
		p, err := walk(u.c.ctx, u.c.x.root, u.base+"/"+name[:at], false, nil)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if u.made[p.node()] {
			return nil, fmt.Errorf("%.200q is a link in the same archive", name[:at])
		}
	}
	p, err := walk(u.c.ctx, u.c.x.root, u.base+"/"+name, true, u.c.newDir)
	if err != nil {
		return nil, err
	}
	if !p.node().isDir() {
		return nil, fmt.Errorf("%.200q is not a directory", name)
	}
	return p.node(), nil
}

// linked returns the target of a hard link, which must come from the archive.
func (u *unpacking) linked(name string) (*node, error) {
	at := u.root
	for part := range strings.SplitSeq(strings.TrimPrefix(path.Clean("/"+name), "/"), "/") {
		if at = at.children[part]; at == nil { // entries from the archive are loaded
			return nil, fmt.Errorf("link target %.200q does not exist", name)
		}
	}
	if at.kind != layers.KindFile {
		return nil, fmt.Errorf("%.200q is not a file to link to", name)
	}
	return at, nil
}
