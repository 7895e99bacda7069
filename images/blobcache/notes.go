package blobcache

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/verify"
)

// maxNote is the maximum length of a note in bytes.
const maxNote = 1 << 20

// Hints stores short texts by key in a directory that all processes of one user share. Anyone who can write to the
// directory can write a hint: it may save a question or cost a useless one, and never decides what is built. A truncated
// or accidentally changed hint counts as missing.
//
// It is a [Cache] with different file names: bounded, shared and pruned in the same way. A nil *Hints is always empty.
// Methods are safe for concurrent use, also by several processes.
type Hints Cache

// HintsDir returns the directory of the hints and notes that belong to the cache: next to it.
func (c *Cache) HintsDir() string { return filepath.Join(filepath.Dir(c.Dir()), "layers") }

// openHints opens the hints in a directory, as [Open] does.
func openHints(dir string, o Options) (*Hints, error) {
	o.MaxBlob = maxNote
	c, err := Open(dir, o)
	return (*Hints)(c), err
}

// notesShare is the size of a blob cache divided by that of its notes.
const notesShare = 16

// OpenHints opens the hints next to the cache. Warn is as in [Options].
func (c *Cache) OpenHints(warn func(error)) (*Hints, error) {
	return openHints(c.HintsDir(), Options{MaxBytes: max(1, c.MaxBytes()/notesShare), Warn: warn})
}

// Close closes the descriptors. Nothing more is found or stored.
func (h *Hints) Close() error { return (*Cache)(h).Close() }

// Info counts the hints and notes.
func (h *Hints) Info() (Info, error) { return (*Cache)(h).Info() }

// Prune removes the least recently used hints and notes, as [Cache.Prune] does. The options are those for the blobs, of
// whose size they have a share.
func (h *Hints) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	o.MaxBytes /= notesShare
	return (*Cache)(h).Prune(ctx, o)
}

// Get returns the hint of a key.
func (h *Hints) Get(key digest.Digest) ([]byte, bool) { return h.get(sha256.New(), key) }

// Put stores a hint and replaces that of the same key. A hint that is too long is not stored.
func (h *Hints) Put(key digest.Digest, text []byte) { h.put(sha256.New(), key, text) }

// MinSeal is the smallest length in bytes of the key of a seal.
const MinSeal = 16

// Notes stores results about content whose digest is part of the key, so that they need not be computed again: they
// decide what is built. So each note is sealed with a key that is not in the directory (HMAC-SHA-256, RFC 2104): a note
// that was written without this key counts as missing. A nil *Notes is always empty. Methods are safe for concurrent use,
// also by several processes.
type Notes struct {
	hints *Hints
	seal  []byte
}

// Sealed returns the notes with a seal, in the directory of the hints; nil if the key is shorter than [MinSeal].
func (h *Hints) Sealed(key []byte) *Notes {
	if h == nil || len(key) < MinSeal {
		return nil
	}
	return &Notes{h, bytes.Clone(key)}
}

// Get returns the note of a key.
func (n *Notes) Get(key digest.Digest) ([]byte, bool) {
	if n == nil {
		return nil, false
	}
	return n.hints.get(hmac.New(sha256.New, n.seal), key)
}

// Put stores a note and replaces that of the same key. A note that is too long is not stored.
func (n *Notes) Put(key digest.Digest, text []byte) {
	if n != nil {
		n.hints.put(hmac.New(sha256.New, n.seal), key, text)
	}
}

// Forget removes a note.
func (n *Notes) Forget(key digest.Digest) {
	if n != nil && verify.Digest(key) == nil {
		(*Cache)(n.hints).remove(key)
	}
}

// sum returns the header of an entry, made of its key and text by h.
func sum(h hash.Hash, key digest.Digest, text []byte) []byte {
	io.WriteString(h, key.String()+"\n")
	h.Write(text)
	return append(hex.AppendEncode(nil, h.Sum(nil)), '\n')
}

func (h *Hints) get(by hash.Hash, key digest.Digest) ([]byte, bool) {
	c := (*Cache)(h)
	f, info, ok := c.find(key, -1)
	if !ok {
		return nil, false
	}
	defer f.Close()
	all, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return nil, false
	}
	const header = 2*sha256.Size + 1
	if len(all) < header || !hmac.Equal(sum(by, key, all[header:]), all[:header]) {
		return nil, false // the next Put replaces it; it may be good for another key
	}
	c.stamp(key, info)
	return all[header:], true
}

func (h *Hints) put(by hash.Hash, key digest.Digest, text []byte) {
	c := (*Cache)(h)
	if c == nil || c.off.Load() || verify.Digest(key) != nil {
		return
	}
	all := append(sum(by, key, text), text...)
	if len(all) > maxNote {
		return
	}
	s := &storer{c: c, want: key, buf: all, n: int64(len(all))}
	s.replaceBlob()
}
