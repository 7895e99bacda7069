package stock

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The form of an inventory, and its limits.
const (
	inventoryKind    = "registry"
	inventoryVersion = 1

	maxRepositories = 1_000_000
	maxManifests    = 100_000 // of one repository
	maxBlobs        = 500_000 // of one repository
	maxTags         = 1_000_000
	maxDigests      = 20_000_000
	maxText         = 4 << 30 // of the JSON, in bytes
	maxRepository   = 128 << 20
	maxName         = 4096
)

// fits tells whether an inventory may have so much.
func fits(repositories, digests, tags int) bool {
	return repositories <= maxRepositories && digests <= maxDigests && tags <= maxTags
}

// header is how an inventory begins. The member "repositories" follows, with a repository on each line.
type header struct {
	Kind     string `json:"inventory"`
	Version  int    `json:"version"`
	Registry string `json:"registry"`
	Path     string `json:"path,omitempty"`
}

// repository is one repository in an inventory.
type repository struct {
	Name      string                   `json:"name"`
	Tags      map[string]digest.Digest `json:"tags"`
	Manifests []digest.Digest          `json:"manifests"`
	Blobs     []blob                   `json:"blobs"`
}

// blob is a blob in an inventory: [DIGEST, SIZE].
type blob struct {
	Digest digest.Digest
	Size   int64
}

func (b blob) MarshalJSON() ([]byte, error) { return json.Marshal([2]any{b.Digest, b.Size}) }

func (b *blob) UnmarshalJSON(text []byte) error {
	parts := [2]any{&b.Digest, &b.Size}
	return json.Unmarshal(text, &parts)
}

// Inventory is what a registry has. It is safe for concurrent use.
type Inventory struct {
	// Registry is HOST[:PORT], and Path what the names of all repositories begin with.
	Registry, Path string

	repositories map[string]*contents
	all          set
}

// contents are those of one repository.
type contents struct {
	tags             map[string]digest.Digest
	manifests, blobs set
}

// sum is a digest of SHA-256.
type sum [sha256.Size]byte

// set is a sorted list without repetitions.
type set []sum

// sumOf returns the bytes of a digest of SHA-256; false for another one.
func sumOf(d digest.Digest) (s sum, ok bool) {
	encoded, ok := strings.CutPrefix(string(d), "sha256:")
	if !ok || len(encoded) != hex.EncodedLen(len(s)) {
		return s, false
	}
	n, err := hex.Decode(s[:], []byte(encoded))
	return s, err == nil && n == len(s)
}

func (s set) has(d digest.Digest) bool {
	want, ok := sumOf(d)
	if !ok {
		return false
	}
	_, found := slices.BinarySearchFunc(s, want, func(a, b sum) int { return bytes.Compare(a[:], b[:]) })
	return found
}

func (s set) sorted() set {
	slices.SortFunc(s, func(a, b sum) int { return bytes.Compare(a[:], b[:]) })
	return slices.Clip(slices.Compact(s))
}

// Have tells whether any repository has a manifest or blob.
func (i *Inventory) Have(d digest.Digest) bool { return i.all.has(d) }

// HaveManifest tells whether a repository, named below Path, has a manifest. What an index names may be missing.
func (i *Inventory) HaveManifest(repository string, d digest.Digest) bool {
	at, ok := i.repositories[repository]
	return ok && at.manifests.has(d)
}

// HaveBlob tells whether a repository, named below Path, has a blob.
func (i *Inventory) HaveBlob(repository string, d digest.Digest) bool {
	at, ok := i.repositories[repository]
	return ok && at.blobs.has(d)
}

// Tag returns what a tag of a repository, named below Path, stands for; empty if there is no such tag.
func (i *Inventory) Tag(repository, tag string) digest.Digest {
	if at, ok := i.repositories[repository]; ok {
		return at.tags[tag]
	}
	return ""
}

// Repositories returns the names below Path, sorted.
func (i *Inventory) Repositories() []string {
	var names []string
	for name := range i.repositories {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Tags returns the tags of a repository, named below Path, sorted.
func (i *Inventory) Tags(repository string) (tags []string) {
	if at, ok := i.repositories[repository]; ok {
		for tag := range at.tags {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}

// Digests returns how many different manifests and blobs there are.
func (i *Inventory) Digests() int { return len(i.all) }

// Read reads an inventory that [Take] has written, in gzip or plain. It takes 64 bytes of memory for each manifest and
// blob, and more for each tag. Digests of other algorithms than SHA-256 are passed over, so that what they name counts
// as missing. Errors are of the classes images.ErrInvalid and images.ErrLimit, or those of the reader.
func Read(r io.Reader) (*Inventory, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	magic, err := buffered.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var plain io.Reader = buffered
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		packed, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("%w: inventory: %w", fault.ErrInvalid, err)
		}
		defer packed.Close()
		plain = packed
	}
	in := &inventoryReader{limited: &io.LimitedReader{R: plain, N: maxText + 1}, out: &Inventory{
		repositories: map[string]*contents{}}}
	if err := in.read(); err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	for _, at := range in.out.repositories {
		in.out.all = append(append(in.out.all, at.manifests...), at.blobs...)
	}
	in.out.all = in.out.all.sorted()
	return in.out, nil
}
