package serve

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/opmformat"
	"github.com/operator-bindery/bindery/serve/api"
)

// readPogreb reads a cache of the format pogreb.v1. The manifests of bundles, which are most of it, stay where they are.
func (b *opmBuilder) readPogreb(ctx context.Context, catalog, cache fs.FS) error {
	dir, err := below(cache, opmformat.PogrebDir)
	if err != nil {
		return err
	}
	digest, err := readOPMDigest(dir)
	if err != nil {
		return err
	}
	// Keys are looked at first: what is no database need not be compared with the catalog.
	files, err := below(dir, "db")
	if err != nil {
		return err
	}
	db, err := opmformat.OpenDatabase(ctx, files, func(name string) (opmformat.Log, error) { return b.openLog(files, name) })
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	b.records.logs = db.Logs
	sum := fnv.New64a()
	if err := opmformat.WriteCatalog(ctx, sum, catalog); err != nil {
		return err
	}
	var value []byte
	if e := db.Find(opmformat.IndexName); e == nil {
		b.fail(fmt.Errorf("no entry %q", opmformat.IndexName))
	} else if value, err = db.Read(e, value); err != nil {
		return fmt.Errorf("database: %w", err)
	} else if err := b.readIndex(value, pogrebBundleKey); err != nil {
		b.fail(err)
	}
	for i := range db.Entries {
		e := &db.Entries[i]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if value, err = db.Read(e, value); err != nil {
			return fmt.Errorf("database: %w", err)
		}
		io.WriteString(sum, e.Key)
		sum.Write(value)
		if b.err == nil {
			b.fail(b.pogrebEntry(e, value))
		}
	}
	return compareOPMDigest(digest, hex.EncodeToString(sum.Sum(nil)))
}

// openLog opens a file of records that can be read at any place.
func (b *opmBuilder) openLog(fsys fs.FS, name string) (opmformat.Log, error) {
	f, size, err := opmformat.OpenRegular(fsys, name)
	if err != nil {
		return opmformat.Log{}, err
	}
	if r, ok := f.(io.ReaderAt); ok {
		b.files = append(b.files, f)
		return opmformat.Log{ReaderAt: r, Size: size}, nil
	}
	// A file of a file system that has no places, which must not be larger than it says.
	scratch, err := atomicfs.NewScratch("", ".bindery-serve-*")
	if err != nil {
		return opmformat.Log{}, errors.Join(err, f.Close())
	}
	b.files = append(b.files, scratch)
	_, err = io.CopyN(scratch, f, size)
	return opmformat.Log{ReaderAt: scratch, Size: size}, errors.Join(err, f.Close())
}

const (
	pogrebBundles = "bundles/"
	pogrebMetas   = "metas/"
)

func pogrebBundleKey(pkg, channel, bundle string) string {
	return pogrebBundles + pkg + "/" + channel + "/" + bundle
}

// pogrebEntry takes an entry of the database.
func (b *opmBuilder) pogrebEntry(e *opmformat.DatabaseEntry, value []byte) error {
	place := uint64(e.Log+1)<<logShift + uint64(e.Value())
	if name, ok := strings.CutPrefix(e.Key, pogrebMetas); ok {
		schema, pkg, _ := strings.Cut(name, "/")
		return b.pogrebCustoms(schema, pkg, value, place)
	}
	if !strings.HasPrefix(e.Key, pogrebBundles) {
		return nil
	}
	light, heavy, err := splitBundle(value, place)
	if err != nil {
		return fmt.Errorf("the entry %.200q: %w", e.Key, err)
	}
	return b.bundle(e.Key, light, heavy)
}

// pogrebCustoms takes the blobs of one schema and package, each of which has its length in front.
func (b *opmBuilder) pogrebCustoms(schema, pkg string, value []byte, place uint64) error {
	for len(value) > 0 {
		if len(value) < 4 || uint64(binary.BigEndian.Uint32(value)) > uint64(len(value)-4) {
			return fmt.Errorf("blobs of schema %.100q, package %.100q: they end in one", schema, pkg)
		}
		n := int(binary.BigEndian.Uint32(value))
		if err := b.custom(schema, pkg, stored{message: value[4 : 4+n], place: place + 4}); err != nil {
			return err
		}
		value, place = value[4+n:], place+4+uint64(n)
	}
	return nil
}

// splitBundle divides a message at a place in a log into the manifests and the rest. Writers put the fields of a message in
// the order of their numbers, so that the manifests are in one piece, which can stay where it is.
func splitBundle(message []byte, place uint64) (*api.Bundle, stored, error) {
	var rest, moved []byte
	from, to := 0, 0 // the manifests, as long as they are in one piece
	for at := 0; at < len(message); {
		number, kind, tag := protowire.ConsumeTag(message[at:])
		if tag < 0 {
			return nil, stored{}, protowire.ParseError(tag)
		}
		n := protowire.ConsumeFieldValue(number, kind, message[at+tag:])
		if n < 0 {
			return nil, stored{}, protowire.ParseError(n)
		}
		field := message[at : at+tag+n]
		switch {
		case number != bundleCSVJSON && number != bundleObject:
			rest = append(rest, field...)
		default:
			text, n := protowire.ConsumeBytes(field[tag:])
			if kind != protowire.BytesType || n < 0 || !utf8.Valid(text) {
				return nil, stored{}, errors.New("manifests that are no text")
			}
			switch {
			case moved != nil:
				moved = append(moved, field...)
			case to == 0:
				from, to = at, at+len(field)
			case to == at:
				to += len(field)
			default:
				moved = append(append([]byte{}, message[from:to]...), field...)
			}
		}
		at += len(field)
	}
	light := &api.Bundle{}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(rest, light); err != nil {
		return nil, stored{}, err
	}
	if moved != nil {
		return light, stored{message: moved}, nil
	}
	return light, stored{message: message[from:to], place: place + uint64(from)}, nil
}
