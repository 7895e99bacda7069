package layers

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"time"

	"github.com/opencontainers/go-digest"
)

// bufferSize is the size of the buffer through which contents are copied into a tar.
const bufferSize = 128 << 10

// writeTar writes the ordered entries as a tar archive. Headers are USTAR; a name that USTAR cannot represent gets a
// PAX record, as does each extended attribute, and nothing else.
func writeTar(ctx context.Context, w io.Writer, entries []Entry) error {
	tw := tar.NewWriter(w)
	buf := make([]byte, bufferSize)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := tw.WriteHeader(e.header()); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if e.Kind != KindFile {
			continue
		}
		if err := e.copyContent(ctx, tw, buf); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return tw.Close()
}

// specialBits are the special mode bits as archives represent them.
var specialBits = map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000}

func (e Entry) header() *tar.Header {
	h := &tar.Header{
		Name:    e.Name,
		Mode:    int64(e.Mode.Perm()),
		Uid:     e.UID,
		Gid:     e.GID,
		ModTime: time.Unix(0, 0),
	}
	for bit, as := range specialBits {
		if e.Mode&bit != 0 {
			h.Mode |= as
		}
	}
	for name, value := range e.Xattrs {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords["SCHILY.xattr."+name] = value
	}
	switch e.Kind {
	case KindDir:
		h.Typeflag, h.Name = tar.TypeDir, e.Name+"/"
	case KindSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
	case KindHardlink:
		h.Typeflag, h.Linkname = tar.TypeLink, e.Link
	default:
		h.Typeflag, h.Size = tar.TypeReg, e.Size
	}
	return h
}

// copyContent copies exactly Size bytes: a file that grows or shrinks while it is read is an error, so that the layer
// always has the planned content.
func (e Entry) copyContent(ctx context.Context, w io.Writer, buf []byte) (err error) {
	r, err := e.Open()
	if err != nil {
		return err
	}
	defer func() {
		if cerr := r.Close(); err == nil {
			err = cerr
		}
	}()
	var done int64
	var sum hash.Hash
	if e.Digest != "" {
		sum = sha256.New()
	}
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, rerr := r.Read(buf)
		done += int64(n)
		if done > e.Size {
			return fmt.Errorf("%w: it was %d bytes long and has grown", ErrChanged, e.Size)
		}
		if n > 0 {
			if sum != nil {
				sum.Write(buf[:n])
			}
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			return rerr
		}
	}
	if done < e.Size {
		return fmt.Errorf("%w: it was %d bytes long and is now %d", ErrChanged, e.Size, done)
	}
	if sum != nil && digest.NewDigest(digest.SHA256, sum) != e.Digest {
		return fmt.Errorf("%w: it has other bytes", ErrChanged)
	}
	return nil
}
