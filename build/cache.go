package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/layers"
)

// Cache has the layers of earlier builds by the keys of their content, and what is known of the validity of catalogs.
// An entry may disappear at any time: the layer is then built again. It is safe for concurrent use, also by several
// processes. A nil *Cache is empty.
//
// Write access to the directory alone does not decide what is built: the bytes of a blob are verified, notes count with
// the seal alone, and hints say only where a registry may have a layer.
type Cache struct {
	hints *blobcache.Hints // repositories of layers
	notes *blobcache.Notes // keys of layers, and of files and packages; nil without a seal
	blobs *blobcache.Cache
}

// NewCache opens the cache whose layers are among cached blobs; its hints and notes are in a directory beside them. seal
// is the secret key of the notes, of at least [blobcache.MinSeal] bytes: without one no result of an earlier build is
// reused or kept, as anyone who can write to the directory could have made it. warn, unless nil, is called once if hints
// and notes can no longer be written. The caller closes the blobs after the cache.
func NewCache(blobs *blobcache.Cache, seal []byte, warn func(error)) (*Cache, error) {
	hints, err := blobs.OpenHints(warn)
	if err != nil {
		return nil, err
	}
	return &Cache{hints, hints.Sealed(seal), blobs}, nil
}

// remembers reports whether results of earlier builds are reused and kept.
func (k *Cache) remembers() bool { return k != nil && k.notes != nil }

// Close closes the hints and notes.
func (k *Cache) Close() error {
	if k == nil {
		return nil
	}
	return k.hints.Close()
}

// knownLayer is the note of a layer.
type knownLayer struct {
	Digest       digest.Digest      `json:"digest"`
	DiffID       digest.Digest      `json:"diffID"`
	Size         int64              `json:"bytes"`
	Uncompressed int64              `json:"uncompressed"`
	Compression  layers.Compression `json:"compression"`
	// Notices are the warnings of the build of the layer.
	Notices []string `json:"notices,omitempty"`
}

func layerNote(key digest.Digest) digest.Digest { return noteKey("layer 1", key.String()) }

// noteKey is the key of a note of the given kind.
func noteKey(kind string, about ...string) digest.Digest {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", kind, about)
	return digest.NewDigest(digest.SHA256, h)
}

func (k *Cache) find(key digest.Digest, c layers.Compression) (knownLayer, bool) {
	if !k.remembers() || key == "" {
		return knownLayer{}, false
	}
	text, ok := k.notes.Get(layerNote(key))
	if !ok {
		return knownLayer{}, false
	}
	var l knownLayer
	if json.Unmarshal(text, &l) != nil || !l.plausible(c) {
		k.forget(key)
		return knownLayer{}, false
	}
	return l, true
}

// plausible reports whether the fields can be those of a layer.
func (l knownLayer) plausible(c layers.Compression) bool {
	for _, d := range []digest.Digest{l.Digest, l.DiffID} {
		if d.Validate() != nil || d.Algorithm() != digest.SHA256 {
			return false
		}
	}
	return l.Size > 0 && l.Uncompressed > 0 && l.Compression == c
}

// storeLayer caches a layer in a file. The blob is stored first: a note without its blob costs more than a blob without
// a note.
func (k *Cache) storeLayer(key digest.Digest, b layers.Blob, path string, notices []string) {
	if !k.remembers() || key == "" {
		return
	}
	k.keepBlob(b, path)
	text, err := json.Marshal(knownLayer{b.Digest, b.DiffID, b.Size, b.Uncompressed, b.Compression, notices})
	if err == nil {
		k.notes.Put(layerNote(key), text)
	}
}

// keepBlob copies a file into the blob cache. Errors are dropped: the file is then not cached, and built again.
func (k *Cache) keepBlob(b layers.Blob, path string) {
	if k.blobs == nil {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		return
	}
	r := k.blobs.Tee(b.Digest, b.Size, f)
	// The tee stores what passes through it, if all of it does.
	_, _ = io.CopyBuffer(io.Discard, struct{ io.Reader }{r}, make([]byte, 128<<10))
	_ = r.Close()
}

// blob opens the bytes of a layer, which have been verified.
func (k *Cache) blob(ctx context.Context, b layers.Blob) (io.ReadCloser, bool) {
	if k == nil {
		return nil, false
	}
	return k.blobs.Open(ctx, b.Digest, b.Size)
}

func (k *Cache) forget(key digest.Digest) {
	if k != nil {
		k.notes.Forget(layerNote(key))
	}
}

// keyParts computes the keys of layers. It reads files that are not hashed yet, in parallel.
func keyParts(ctx context.Context, o *Options, parts []part) error {
	return guard.Each(ctx, o.Jobs, parts, func(ctx context.Context, i int, _ part) (err error) {
		p := &parts[i]
		if p.layer, err = p.layer.Hash(ctx); err == nil {
			p.key, err = p.layer.Key(o.layerOptions())
		}
		return err
	})
}

// hashContents computes the digests of the files of packages, in parallel.
func hashContents(ctx context.Context, o *Options, contents []content) error {
	return guard.Each(ctx, o.Jobs, contents, func(ctx context.Context, _ int, c content) error {
		return layers.HashEntries(ctx, c.entries)
	})
}

// findKnown looks up the layer of a part without writing it.
func (o *Options) findKnown(p part) (knownLayer, bool) {
	if l, ok := o.Cache.find(p.key, o.Compression); ok {
		return l, true
	}
	if o.Previous == nil || !o.Previous.Trusted || o.Cache == nil || p.key == "" {
		return knownLayer{}, false
	}
	b, ok := o.Previous.layers[p.key]
	l := knownLayer{b.Digest, b.DiffID, b.Size, b.Uncompressed, o.Compression, nil}
	if l.Uncompressed == 0 {
		l.Uncompressed = p.layer.Size() // manifests do not have it
	}
	return l, ok && l.plausible(o.Compression)
}

// report passes on the notices of written layers.
func (o *Options) report(notices []string) {
	if o.Warn == nil {
		return
	}
	for _, n := range notices {
		o.Warn(n)
	}
}

// aloneSize is the length in bytes from which a file has a separate note. Smaller files share one note per top
// directory of the catalog: rereading them is fast, and a catalog may have very many of them.
const aloneSize = 64 << 10

// maxNoted is the maximum length in bytes of a file with a note. Reading longer files is a small part of a build.
const maxNoted = 256 << 20

// maxGroups is the maximum number of notes about files: each is a file in the cache.
const maxGroups = 20_000

// list lists the files of the catalog, with their digests if there may be notes about them.
func (r *reading) list() error {
	names, err := declcfg.Files(r.fsys)
	if err != nil {
		return err
	}
	slices.Sort(names)
	r.files = make([]sourceFile, len(names))
	for i, name := range names {
		r.index[name] = i
		r.files[i].name = name
	}
	if !r.remembers() {
		return nil
	}
	jobs := cmp.Or(max(r.o.Jobs, 0), runtime.GOMAXPROCS(0))
	return guard.Each(r.ctx, jobs, names, func(ctx context.Context, i int, name string) (err error) {
		in, err := r.fsys.Open(name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, in.Close()) }()
		if info, err := in.Stat(); err != nil || info.Size() > maxNoted {
			return errors.Join(err, errReadAll)
		}
		h, f := sha256.New(), &r.files[i]
		f.size, err = ctxio.Copy(h, ctxio.Reader{Ctx: ctx, R: in})
		f.digest = digest.NewDigest(digest.SHA256, h)
		return err
	})
}

// groupFiles determines which files share a note.
func groupFiles(files []sourceFile) [][]int {
	var out [][]int
	at := map[string]int{}
	for i, f := range files {
		dir, _, below := strings.Cut(f.name, "/")
		if !below {
			dir = ""
		}
		n, ok := at[dir]
		switch {
		case f.size >= aloneSize:
			out = append(out, []int{i})
		case ok:
			out[n] = append(out[n], i)
		default:
			at[dir] = len(out)
			out = append(out, []int{i})
		}
	}
	return out
}

// filesNote returns the key of the note with the packages of files. Its existence also means that the files are
// readable.
func (r *reading) filesNote(group []int) digest.Digest {
	about := []string{r.o.Program}
	for _, i := range group {
		about = append(about, r.files[i].digest.String())
	}
	return noteKey("files 1", about...)
}

// validNote returns the key of the note that a package is valid.
func (r *reading) validNote(pkg string, files []int) digest.Digest {
	about := []string{r.o.Program, strconv.Quote(pkg)}
	for _, i := range files {
		about = append(about, r.files[i].digest.String())
	}
	return noteKey("valid 1", about...)
}

// recall reads the packages of files from a note.
func (r *reading) recall(group []int) bool {
	text, ok := r.o.Cache.notes.Get(r.filesNote(group))
	if !ok {
		return false
	}
	var packages [][]string
	if json.Unmarshal(text, &packages) != nil || len(packages) != len(group) {
		return false
	}
	for n, i := range group {
		r.files[i].packages = packages[n]
	}
	return true
}

// remember writes the note of files that were read, unless they caused warnings, which every build must repeat.
func (r *reading) remember(group []int) {
	packages := make([][]string, len(group))
	for n, i := range group {
		if r.files[i].warned {
			return
		}
		packages[n] = r.files[i].packages
	}
	if text, err := json.Marshal(packages); err == nil {
		r.o.Cache.notes.Put(r.filesNote(group), text)
	}
}

// witness hashes files of a file system while they are read, so that the parsed bytes can be compared with an earlier
// digest.
type witness struct {
	fs.FS
	mu   sync.Mutex
	sums map[string]fileSum
}

type fileSum struct {
	digest digest.Digest
	size   int64
}

func newWitness(fsys fs.FS) *witness { return &witness{FS: fsys, sums: map[string]fileSum{}} }

// sum returns the digest of a file that was read to its end, else empty.
func (w *witness) sum(name string) fileSum {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sums[name]
}

func (w *witness) Open(name string) (fs.File, error) {
	f, err := w.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &witnessed{File: f, w: w, name: name, h: sha256.New()}, nil
}

// witnessed is an open file that is hashed.
type witnessed struct {
	fs.File
	w    *witness
	name string
	h    hash.Hash
	size int64
}

func (f *witnessed) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.h.Write(p[:n])
	f.size += int64(n)
	if err == io.EOF {
		f.w.mu.Lock()
		f.w.sums[f.name] = fileSum{digest.NewDigest(digest.SHA256, f.h), f.size}
		f.w.mu.Unlock()
	}
	return n, err
}
