package inspect

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
)

// entry is one entry of a layer's archive.
type entry struct {
	name string
	kind byte // as in archive/tar
	mode int64
	size int64
	link string
	// odd describes header fields that bindery never sets; empty if there are none.
	odd string
	// at is the position of the file's content in the spool.
	at     spool.Span
	digest [sha256.Size]byte
}

// hidden returns the name that a whiteout removes. opaque reports an opaque marker, which removes everything that lower
// layers have in the directory; is reports whether the entry is a whiteout at all.
func (e entry) hidden() (name string, opaque, is bool) {
	dir, base := path.Split(e.name)
	rest, ok := strings.CutPrefix(base, ".wh.")
	switch {
	case !ok:
		return "", false, false
	case base == ".wh..wh..opq":
		return strings.TrimSuffix(dir, "/"), true, true
	}
	return dir + rest, false, true
}

// contents are the entries of one layer and the content of its files.
type contents struct {
	entries []entry
	files   int
	spool   *spool.Spool // nil if the content of the files is not needed
}

func newContents(temp string, spooled bool) *contents {
	if !spooled {
		return &contents{}
	}
	return &contents{spool: spool.New(temp, 0)}
}

// close removes the temporary file.
func (c *contents) close() error {
	if c.spool == nil {
		return nil
	}
	return c.spool.Close()
}

// addEntry adds an entry of the layer's archive.
func (c *contents) addEntry(ctx context.Context, name string, h *tar.Header, content io.Reader) error {
	e := entry{name: name, kind: h.Typeflag, mode: h.Mode & 0o7777, size: h.Size, link: h.Linkname, odd: listOddities(h)}
	if h.Typeflag == tar.TypeReg {
		c.files++
	}
	if h.Typeflag == tar.TypeReg && c.spool != nil {
		sum := sha256.New()
		at, err := c.spool.AppendFrom(ctx, io.TeeReader(content, sum))
		if err != nil {
			return err
		}
		e.at = at
		sum.Sum(e.digest[:0])
	}
	c.entries = append(c.entries, e)
	return nil
}

// listOddities lists header fields with values that bindery never writes: owners, times, extended attributes.
func listOddities(h *tar.Header) string {
	var odd []string
	if h.Uid != 0 || h.Gid != 0 {
		odd = append(odd, fmt.Sprintf("owner %d:%d", h.Uid, h.Gid))
	}
	if h.Uname != "" || h.Gname != "" {
		odd = append(odd, fmt.Sprintf("owner %.40q:%.40q", h.Uname, h.Gname))
	}
	if !h.ModTime.Equal(time.Unix(0, 0)) {
		odd = append(odd, "time "+h.ModTime.UTC().Format(time.RFC3339))
	}
	for key := range h.PAXRecords {
		if key != "path" && key != "linkpath" {
			odd = append(odd, "extended attributes")
			break
		}
	}
	return strings.Join(odd, ", ")
}

// open returns a reader of a file's content.
func (c *contents) open(e entry) (io.ReadCloser, error) {
	return io.NopCloser(c.spool.Open(e.at)), nil
}

// layerEntry converts an entry to the one that [layers] writes, with the mode unchanged.
func (c *contents) layerEntry(e entry) (layers.Entry, error) {
	mode := fs.FileMode(e.mode & 0o777)
	if e.mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	out := layers.Entry{Name: e.name, Mode: mode, Size: e.size, Link: strings.TrimSuffix(e.link, "/")}
	switch _, _, whiteout := e.hidden(); {
	case whiteout:
		out.Kind, out.Size = layers.KindWhiteout, 0
	case e.kind == tar.TypeReg:
		out.Open = func() (io.ReadCloser, error) { return c.open(e) }
	case e.kind == tar.TypeDir:
		return layers.Dir(e.name, mode), nil
	case e.kind == tar.TypeSymlink:
		out.Kind = layers.KindSymlink
	case e.kind == tar.TypeLink:
		out.Kind = layers.KindHardlink
	default:
		return out, fmt.Errorf("%.200q is a device or FIFO", e.name)
	}
	return out, nil
}

// diffID returns the digest of the layer's uncompressed archive.
func diffID(ctx context.Context, l layers.Layer) (digest.Digest, error) {
	b, err := l.Write(ctx, io.Discard, layers.Options{Compression: layers.Uncompressed})
	return b.DiffID, err
}
