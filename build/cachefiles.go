package build

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/ctxio"
)

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
	g, ctx := errgroup.WithContext(r.ctx)
	g.SetLimit(jobs)
	for i, name := range names {
		f := &r.files[i]
		g.Go(func() (err error) {
			in, err := r.fsys.Open(name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, in.Close()) }()
			if info, err := in.Stat(); err != nil || info.Size() > maxNoted {
				return errors.Join(err, errReadAll)
			}
			h := sha256.New()
			f.size, err = ctxio.Copy(h, ctxio.Reader{Ctx: ctx, R: in})
			f.digest = digest.NewDigest(digest.SHA256, h)
			return err
		})
	}
	return g.Wait()
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
