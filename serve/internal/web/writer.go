package web

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"sort"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// Writer builds a [Content] from blobs in any order. It is not safe for concurrent use. It must be ended with either
// Finish or Abort.
type Writer struct {
	log   *slog.Logger
	file  *atomicfs.Scratch
	most  int64 // maximum size of the file, because it is in memory; zero for no limit
	out   *bufio.Writer
	hash  hash.Hash
	size  int64
	blobs []blob
	names map[string]string
	err   error
}

// NewWriter returns a writer with a temporary file. If none can be created, as in a container with a read-only root and
// without a /tmp mount, it uses a file in memory and logs that; a catalog that needs more than a quarter of the
// process's memory limit is then refused.
func NewWriter(log *slog.Logger) (*Writer, error) {
	w := &Writer{log: log, hash: sha256.New(), names: map[string]string{}}
	f, err := w.newFile()
	if err != nil {
		return nil, err
	}
	w.file = f
	w.out = bufio.NewWriterSize(io.MultiWriter(f, w.hash), 64<<10)
	return w, nil
}

func (w *Writer) newFile() (*atomicfs.Scratch, error) {
	f, err := atomicfs.NewScratch("", ".bindery-http-*")
	if err == nil {
		return f, nil
	}
	f, memoryErr := atomicfs.NewMemory("bindery-http")
	if memoryErr != nil {
		return nil,
			fmt.Errorf("a temporary file for what is offered over HTTP cannot be made (TMPDIR names the directory): %w",
				errors.Join(err, memoryErr))
	}
	if w.file == nil {
		w.log.Warn(
			"no temporary file can be made: what is offered over HTTP is kept in memory (TMPDIR names a directory "+
				"that can be written)", "error", err)
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		w.most = limit / 4 // while a catalog is replaced, there are two
	}
	return f, nil
}

// full returns the error for a catalog that is too large to be kept in memory.
func (w *Writer) full() error {
	if w.most == 0 || w.size <= w.most {
		return nil
	}
	return fmt.Errorf("what is offered over HTTP has more than %d bytes, a quarter of the memory limit, and no "+
		"temporary file can be made: mount a directory that can be written at %s",
		w.most, os.TempDir())
}

// Add writes a blob: the canonical JSON of a [declcfg.Meta] unchanged, whatever its schema, or the JSON of a typed
// blob.
func (w *Writer) Add(b declcfg.Blob) error {
	if w.err != nil {
		return w.err
	}
	var text []byte
	entry := blob{schema: w.intern(b.BlobSchema()), pkg: w.intern(b.BlobPackage()), name: w.intern(b.BlobName()),
		offset: w.size}
	switch b := b.(type) {
	case *declcfg.Meta:
		text = b.Blob
	case *declcfg.Package:
		text, entry.pkg = declcfg.AppendJSON(nil, b, false), ""
	default:
		text = declcfg.AppendJSON(nil, b, false)
	}
	entry.length = int64(len(text))
	w.blobs = append(w.blobs, entry)
	w.size += entry.length + 1
	if w.err = w.full(); w.err != nil {
		return w.err
	}
	w.out.Write(text)
	if err := w.out.WriteByte('\n'); err != nil {
		w.err = fmt.Errorf("write temporary file: %w", err)
	}
	return w.err
}

// intern keeps one copy of each name: a package's name is in all of its blobs.
func (w *Writer) intern(s string) string {
	if known, ok := w.names[s]; ok {
		return known
	}
	w.names[s] = s
	return s
}

// Abort releases everything.
func (w *Writer) Abort() error { return w.file.Close() }

// Finish sorts the blobs and reads the data for the list of packages. The content's time is now.
func (w *Writer) Finish(ctx context.Context) (_ *Content, err error) {
	defer func() {
		if err != nil {
			w.file.Close()
		}
	}()
	if w.err != nil {
		return nil, w.err
	}
	if err := w.out.Flush(); err != nil {
		return nil, fmt.Errorf("write temporary file: %w", err)
	}
	sort.SliceStable(w.blobs, func(i, j int) bool {
		x, y := w.blobs[i].owner(), w.blobs[j].owner()
		if (x == "") != (y == "") {
			return y == "" // blobs of no package come last
		}
		return x < y
	})
	c := &Content{file: w.file, size: w.size, blobs: w.blobs, modified: time.Now(), spans: map[string][2]int{},
		byName: map[string]int{}}
	w.hash.Sum(c.digest[:0])
	for i := range c.blobs {
		span, ok := c.spans[c.blobs[i].owner()]
		if !ok {
			span[0] = i
		}
		span[1] = i + 1
		c.spans[c.blobs[i].owner()] = span
	}
	if err := c.summarize(ctx); err != nil {
		return nil, err
	}
	return c, nil
}
