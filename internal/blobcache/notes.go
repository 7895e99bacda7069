package blobcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/verify"
)

// maxNote is the longest note in bytes.
const maxNote = 1 << 20

// Notes keeps short texts by a key in a directory, for all processes of one user: what a program has found out about
// something whose digest is part of the key, and need not find out again. Whatever is wrong with the
// directory, a note is then missing. So is a note that was cut short or changed by accident; a user who can write to the
// directory can make the notes say anything.
//
// It is a [Cache] with other names: bounded, shared and swept in the same way. A nil *Notes is always empty. Methods are
// safe for concurrent use, also by many processes.
type Notes struct{ c *Cache }

// NotesDir is the directory of the notes that belong to a cache of blobs in dir: beside it.
func NotesDir(dir string) string { return filepath.Join(filepath.Dir(dir), "layers") }

// OpenNotes opens the notes in a directory, as [Open] does.
func OpenNotes(dir string, o Options) (*Notes, error) {
	o.MaxBlob = maxNote
	c, err := Open(dir, o)
	if err != nil {
		return nil, err
	}
	return &Notes{c}, nil
}

// NotesShare is the part of the size of a cache of blobs that the notes beside it may have: a sixteenth.
const NotesShare = 16

// OpenNotes opens the notes beside the cache. Warn is as in [Options].
func (c *Cache) OpenNotes(warn func(error)) (*Notes, error) {
	return OpenNotes(NotesDir(c.Dir()), Options{MaxBytes: max(1, c.MaxBytes()/NotesShare), Warn: warn})
}

// Close gives the descriptors back. Nothing more is found or stored.
func (n *Notes) Close() error {
	if n == nil {
		return nil
	}
	return n.c.Close()
}

// Info counts the notes.
func (n *Notes) Info() (Info, error) {
	if n == nil {
		return Info{}, nil
	}
	return n.c.Info()
}

// Prune removes the notes that were not used for longest, as [Cache.Prune] does.
func (n *Notes) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	if n == nil {
		return Pruned{}, nil
	}
	return n.c.Prune(ctx, o)
}

// noteSum is what a note begins with: a digest of its key and its text, so that one under another's name is found out.
func noteSum(key digest.Digest, text []byte) []byte {
	h := sha256.New()
	io.WriteString(h, key.String()+"\n")
	h.Write(text)
	return append(hex.AppendEncode(nil, h.Sum(nil)), '\n')
}

// Get finds the note of a key.
func (n *Notes) Get(key digest.Digest) ([]byte, bool) {
	if n == nil || verify.Digest(key) != nil {
		return nil, false
	}
	root, err := n.c.open()
	if err != nil {
		return nil, false
	}
	name := blobEntry(key)
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxNote {
		return nil, false
	}
	f, err := openQuickly(root, name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	all, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return nil, false
	}
	const sum = 2*sha256.Size + 1
	if len(all) < sum || !bytes.Equal(noteSum(key, all[sum:]), all[:sum]) {
		_ = root.Remove(name)
		return nil, false
	}
	n.c.stamp(key, info)
	return all[sum:], true
}

// Put keeps a note in place of another one of the same key. One that is too long is not kept.
func (n *Notes) Put(key digest.Digest, text []byte) {
	if n == nil || n.c.off.Load() || verify.Digest(key) != nil {
		return
	}
	all := append(noteSum(key, text), text...)
	if len(all) > maxNote {
		return
	}
	s := &storer{c: n.c, want: key, buf: all, n: int64(len(all))}
	if err := s.place(); err != nil {
		s.giveUp()
		n.c.fail(err)
		return
	}
	_ = s.file.Close()
	n.c.pruneIfDue()
}

// Forget removes a note.
func (n *Notes) Forget(key digest.Digest) {
	if n == nil || verify.Digest(key) != nil {
		return
	}
	if root, err := n.c.open(); err == nil {
		_ = root.RemoveAll(blobEntry(key))
	}
}
