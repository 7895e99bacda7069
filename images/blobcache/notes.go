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

// maxNote is the maximum length of a note in bytes.
const maxNote = 1 << 20

// Notes stores short texts by key in a directory that all processes of one user share. A note holds a result about
// content whose digest is part of the key, so that it need not be computed again. A truncated or accidentally changed
// note counts as missing. There is no protection against a user who can write to the directory.
//
// It is a [Cache] with different file names: bounded, shared and pruned in the same way. A nil *Notes is always empty.
// Methods are safe for concurrent use, also by several processes.
type Notes Cache

// NotesDir returns the directory of the notes that belong to the cache: next to it.
func (c *Cache) NotesDir() string { return filepath.Join(filepath.Dir(c.Dir()), "layers") }

// openNotes opens the notes in a directory, as [Open] does.
func openNotes(dir string, o Options) (*Notes, error) {
	o.MaxBlob = maxNote
	c, err := Open(dir, o)
	return (*Notes)(c), err
}

// notesShare is the size of a blob cache divided by that of its notes.
const notesShare = 16

// OpenNotes opens the notes next to the cache. Warn is as in [Options].
func (c *Cache) OpenNotes(warn func(error)) (*Notes, error) {
	return openNotes(c.NotesDir(), Options{MaxBytes: max(1, c.MaxBytes()/notesShare), Warn: warn})
}

// Close closes the descriptors. Nothing more is found or stored.
func (n *Notes) Close() error { return (*Cache)(n).Close() }

// Info counts the notes.
func (n *Notes) Info() (Info, error) { return (*Cache)(n).Info() }

// Prune removes the least recently used notes, as [Cache.Prune] does. The options are those for the blobs, of whose size
// the notes have a share.
func (n *Notes) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	o.MaxBytes /= notesShare
	return (*Cache)(n).Prune(ctx, o)
}

// noteSum returns the header of a note: a digest of its key and text, which detects a note stored under another key.
func noteSum(key digest.Digest, text []byte) []byte {
	h := sha256.New()
	io.WriteString(h, key.String()+"\n")
	h.Write(text)
	return append(hex.AppendEncode(nil, h.Sum(nil)), '\n')
}

// Get returns the note of a key.
func (n *Notes) Get(key digest.Digest) ([]byte, bool) {
	c := (*Cache)(n)
	f, info, ok := c.find(key, -1)
	if !ok {
		return nil, false
	}
	defer f.Close()
	all, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return nil, false
	}
	const sum = 2*sha256.Size + 1
	if len(all) < sum || !bytes.Equal(noteSum(key, all[sum:]), all[:sum]) {
		c.remove(key)
		return nil, false
	}
	c.stamp(key, info)
	return all[sum:], true
}

// Put stores a note and replaces that of the same key. A note that is too long is not stored.
func (n *Notes) Put(key digest.Digest, text []byte) {
	c := (*Cache)(n)
	if c == nil || c.off.Load() || verify.Digest(key) != nil {
		return
	}
	all := append(noteSum(key, text), text...)
	if len(all) > maxNote {
		return
	}
	s := &storer{c: c, want: key, buf: all, n: int64(len(all))}
	s.replaceBlob()
}

// Forget removes a note.
func (n *Notes) Forget(key digest.Digest) {
	if n != nil && verify.Digest(key) == nil {
		(*Cache)(n).remove(key)
	}
}
