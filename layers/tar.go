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

// bufferSize is the only memory that a content passes through on its way into a tar.
const bufferSize = 128 << 10

// writeTar writes the ordered entries as a tar archive. Headers are USTAR; a name that USTAR cannot hold gets one PAX
// record and nothing else does.
func writeTar(ctx context.Context, w io.Writer, entries []Entry, o Options) error {
	tw := tar.NewWriter(w)
	buf := make([]byte, bufferSize)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := tw.WriteHeader(e.header(o)); err != nil {
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

func (e Entry) header(o Options) *tar.Header {
	h := &tar.Header{
		Name:    e.Name,
		Mode:    int64(e.Mode.Perm()),
		Uid:     o.UID,
		Gid:     o.GID,
		ModTime: o.time(),
	}
	switch e.Kind {
	case KindDir:
		h.Typeflag, h.Name = tar.TypeDir, e.Name+"/"
		if e.Mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
	case KindSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
	case KindHardlink:
		h.Typeflag, h.Linkname = tar.TypeLink, e.Link
	default:
		h.Typeflag, h.Size = tar.TypeReg, e.Size
	}
	return h
}

// copyContent copies exactly Size bytes, so that a file that grows or shrinks while it is read is an error and never a
// layer with other content than the one that was planned.
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

// time is the modification time of every entry; whole seconds, as USTAR has no finer ones.
func (o Options) time() time.Time {
	if o.Time.IsZero() {
		return time.Unix(0, 0)
	}
	return o.Time.Truncate(time.Second)
}
