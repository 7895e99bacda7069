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

// entry is a name in a layer.
type entry struct {
	name string
	kind byte // as in archive/tar
	mode int64
	size int64
	link string
	// odd is what no layer of this module has in a header; empty if there is nothing.
	odd string
	// at is where the content is in the contents' spool.
	at     spool.Span
	digest [sha256.Size]byte
}

// hidden is the name that a whiteout removes; opaque says that it is all that a directory has.
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

// contents are the entries of one layer, and the content of its files.
type contents struct {
	entries []entry
	files   int
	spool   *spool.Spool // nil if the content is not wanted
}

func newContents(temp string, spooled bool) *contents {
	if !spooled {
		return &contents{}
	}
	return &contents{spool: spool.New(temp, 0)}
}

// close gives the spool back.
func (c *contents) close() error {
	if c.spool == nil {
		return nil
	}
	return c.spool.Close()
}

// take adds an entry of the layer.
func (c *contents) take(ctx context.Context, name string, h *tar.Header, content io.Reader) error {
	e := entry{name: name, kind: h.Typeflag, mode: h.Mode & 0o7777, size: h.Size, link: h.Linkname, odd: oddities(h)}
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

// oddities are what this module never writes into the header of an entry.
func oddities(h *tar.Header) string {
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

// open gives the content of a file.
func (c *contents) open(e entry) (io.ReadCloser, error) {
	return io.NopCloser(c.spool.Open(e.at)), nil
}

// asIs is the entry as [layers] would write it, with its mode as it is.
func (c *contents) asIs(e entry) (layers.Entry, error) {
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

// diffID is the digest that a layer's archive has.
func diffID(ctx context.Context, l layers.Layer) (digest.Digest, error) {
	b, err := layers.Write(ctx, io.Discard, l, layers.Options{Compression: layers.Uncompressed})
	return b.DiffID, err
}
