package layers

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

// keyFormat names the encoding of keys. It must change with the encoding, and with the tar bytes of the same entries.
const keyFormat = "bindery layer 1"

// Generations of the compressors' output. A codec's number must be raised with every change of its bytes, by a level, a
// window, or a new version of the library: otherwise keys would refer to layers with other bytes. The golden digests of
// the tests detect such a change.
const (
	gzipGeneration = 1
	zstdGeneration = 1
	noneGeneration = 1
)

// CodecID names the compressor of layers with everything that its output depends on: level, window, and generation. It
// is for reports about how an image was built.
func (c Compression) CodecID() (string, error) {
	switch c {
	case Gzip:
		return fmt.Sprintf("gzip level %d generation %d", gzipLevel, gzipGeneration), nil
	case Zstd:
		return fmt.Sprintf("zstd level %d window %d generation %d", zstdLevel, zstdWindow, zstdGeneration), nil
	case Uncompressed:
		return fmt.Sprintf("none generation %d", noneGeneration), nil
	}
	return "", fmt.Errorf("unknown compression %q", c)
}

// Hash returns the layer with the digests of all its files. It reads the files without one.
func (l Layer) Hash(ctx context.Context) (Layer, error) {
	l.Entries = slices.Clone(l.Entries)
	if err := HashEntries(ctx, l.Entries); err != nil {
		return l, fmt.Errorf("layer %s: %w", l.Name, err)
	}
	return l, nil
}

// HashEntries sets the digests of the files that have none.
func HashEntries(ctx context.Context, entries []Entry) error {
	for i := range entries {
		e := &entries[i]
		if e.Kind != KindFile || e.Digest != "" {
			continue
		}
		d, err := e.hash(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		e.Digest = d
	}
	return nil
}

func (e Entry) hash(ctx context.Context) (_ digest.Digest, err error) {
	r, err := e.Open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	h := sha256.New()
	// One more byte is read than expected, so that a file that has grown is detected and an endless one is not read.
	n, err := io.Copy(h, io.LimitReader(ctxio.Reader{Ctx: ctx, R: r}, e.Size+1))
	if err != nil {
		return "", err
	}
	if n != e.Size {
		return "", fmt.Errorf("%w: it was %d bytes long", ErrChanged, e.Size)
	}
	return digest.NewDigest(digest.SHA256, h), nil
}

// Key returns a digest of everything that the bytes of the layer depend on. It takes a fraction of the time of writing
// the layer: layers with the same key have the same bytes, on every machine. The files must have digests, see
// [Layer.Hash]. The key is empty for a layer with More and without MoreID.
//
// It is the sha256 of the key format, the codec, owner and time, MoreID, and of each entry in tar order: kind, mode,
// name, link target, size, digest of the content. Strings are preceded by their length and numbers have 64 bits, so
// that no two layers have the same encoding.
func (l Layer) Key(o Options) (digest.Digest, error) {
	if l.More != nil && l.MoreID == "" {
		return "", nil
	}
	codec, err := o.Compression.CodecID()
	if err != nil {
		return "", err
	}
	entries, err := order(l.Entries)
	if err != nil {
		return "", fmt.Errorf("layer %s: %w", l.Name, err)
	}
	k := keyWriter{sha256.New()}
	k.text(keyFormat, codec)
	// The owner and time of all entries, which were options once. They stay in the key so that keys of published layers
	// do not change.
	k.number(0, 0, 0)
	k.text(l.MoreID)
	k.number(int64(len(entries)))
	for _, e := range entries {
		if e.Kind == KindFile && e.Digest == "" {
			return "", fmt.Errorf("layer %s: %s: its digest is not known", l.Name, e.Name)
		}
		k.number(int64(e.Kind), int64(e.Mode))
		k.text(e.Name, e.Link)
		k.number(e.Size)
		k.text(e.Digest.String())
		if e.UID != 0 || e.GID != 0 || len(e.Xattrs) > 0 {
			// Entries without owner and attributes have the encoding from before these existed. The number -1 cannot be
			// confused with the kind of the next entry.
			k.number(-1, int64(e.UID), int64(e.GID), int64(len(e.Xattrs)))
			for _, name := range slices.Sorted(maps.Keys(e.Xattrs)) {
				k.text(name, e.Xattrs[name])
			}
		}
	}
	return digest.NewDigest(digest.SHA256, k.h), nil
}

// keyWriter encodes the inputs of a key.
type keyWriter struct{ h hash.Hash }

func (k keyWriter) number(ns ...int64) {
	for _, n := range ns {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(n))
		k.h.Write(b[:])
	}
}

func (k keyWriter) text(ss ...string) {
	for _, s := range ss {
		k.number(int64(len(s)))
		io.WriteString(k.h, s)
	}
}
