package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/guard"
)

// fingerprint is the state of a source as far as it is visible without reading it: equal fingerprints mean that names,
// sizes, times and, on Linux, inodes and change times are the same. A source that cannot be read has a fingerprint too.
type fingerprint struct {
	sum    [sha256.Size]byte
	newest time.Time // of all changes
}

func (f fingerprint) same(g fingerprint) bool { return f.sum == g.sum }

// settling is how long after a change a second one may leave the same times: file system clocks tick at up to 100 Hz.
const settling = 10 * time.Millisecond

// unsettled returns how long a fingerprint cannot be relied upon. A time in the future counts as now.
func (f fingerprint) unsettled() time.Duration {
	return min(settling-time.Since(f.newest), settling)
}

type fingerprinter struct {
	hash     hash.Hash
	newest   time.Time
	cacheDir string // as in [Source]
}

func (f *fingerprinter) text(s string) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
	f.hash.Write(n[:])
	f.hash.Write([]byte(s))
}

func (f *fingerprinter) file(name string, info fs.FileInfo) {
	f.text(name)
	device, inode, changed := identity(info)
	if changed.IsZero() {
		changed = info.ModTime()
	}
	for _, v := range [...]uint64{uint64(info.Size()), uint64(info.Mode()), uint64(info.ModTime().UnixNano()), device,
		inode, uint64(changed.UnixNano())} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], v)
		f.hash.Write(n[:])
	}
	if changed.After(f.newest) {
		f.newest = changed
	}
}

// lookAt returns the fingerprint of a catalog directory's files, or of other files, each of which may be missing. Links
// are followed, so that changing a link is a change. Errors become part of the fingerprint: reading the source reports
// them.
func lookAt(paths ...string) fingerprint { return lookPast("", paths...) }

// lookPast is like [lookAt] without a cache directory below.
func lookPast(cacheDir string, paths ...string) fingerprint {
	f := &fingerprinter{hash: sha256.New(), cacheDir: cacheDir}
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			f.text(err.Error())
		case info.IsDir():
			f.directory(path)
		default:
			f.file(path, info)
		}
	}
	result := fingerprint{newest: f.newest}
	f.hash.Sum(result.sum[:0])
	return result
}

func (f *fingerprinter) directory(dir string) {
	// Not declcfg.OpenDir: this directory is closed immediately.
	root, err := os.OpenRoot(dir)
	if err != nil {
		f.text(err.Error())
		return
	}
	defer root.Close()
	fsys := root.FS()
	if f.cacheDir != "" {
		fsys = withoutCache{fsys, f.cacheDir}
	}
	names, err := declcfg.Files(fsys)
	if err != nil {
		f.text(err.Error())
	}
	for _, name := range names {
		info, err := root.Stat(name)
		if err != nil {
			f.text(err.Error())
			continue
		}
		f.file(name, info)
	}
}

// hasMoved reports whether the directory that the source has opened is no longer the one at its path: the fingerprint
// is then not that of the source.
func (s Source) hasMoved() bool {
	if s.dir == "" {
		return false
	}
	opened, err := fs.Stat(s.fsys, ".")
	if err != nil {
		return true
	}
	there, err := os.Stat(s.dir)
	return err != nil || !os.SameFile(opened, there)
}

// fingerprint returns the source's fingerprint; ok is false if it has no files on disk.
func (s Source) fingerprint() (fingerprint, bool) {
	switch {
	case s.path == "":
		return fingerprint{}, false
	case s.blobs != nil:
		// Content of a database may still be in its journals.
		return lookAt(s.path, s.path+"-wal", s.path+"-journal"), true
	}
	return lookPast(s.cacheDir, s.path), true
}

// digester is a reader that hashes what it reads.
type digester struct {
	r    io.Reader
	hash hash.Hash
	size int64
}

func (d *digester) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	d.hash.Write(b[:n])
	d.size += int64(n)
	return n, err
}

// digestFiles returns the digests of the existing files. No file is parsed.
func digestFiles(ctx context.Context, fsys fs.FS, files []string) (map[string]SourceFile, error) {
	var mu sync.Mutex
	digests := make(map[string]SourceFile, len(files))
	err := guard.Each(ctx, runtime.GOMAXPROCS(0), files, func(_ context.Context, _ int, name string) error {
		f, err := fsys.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		size, err := ctxio.Copy(h, f)
		if err != nil {
			return err
		}
		s := SourceFile{Name: name, Size: size}
		h.Sum(s.Digest[:0])
		mu.Lock()
		digests[name] = s
		mu.Unlock()
		return nil
	})
	return digests, err
}
