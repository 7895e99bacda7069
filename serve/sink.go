package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// sink stores built cache files and opens them. It may be used concurrently.
type sink interface {
	// put does not keep e's memory.
	put(e *encoded) (*Package, error)
	// close releases what the packages read from. It must be called after their own Close.
	close() error
}

// dirSink writes a cache directory. What cannot be written goes to another sink, if there is one.
type dirSink struct {
	dir      string
	fallback *scratch
	files    atomicfs.Batch

	mu   sync.Mutex
	made []string // newly created paths, outermost first
}

func (s *dirSink) put(e *encoded) (*Package, error) {
	p, err := s.write(e)
	if err != nil && s.fallback != nil {
		s.fallback.log.Warn("a package cannot be written to the cache directory: a temporary cache is used for it",
			"package", e.name, "error", err)
		return s.fallback.put(e)
	}
	return p, err
}

func (s *dirSink) write(e *encoded) (*Package, error) {
	path := filepath.Join(s.dir, CacheFileName(e.name))
	// Group and others may read: a pod's user is rarely the one who wrote the file.
	_, err := os.Lstat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err := s.writeFile(path, e); err != nil {
		return nil, err
	}
	if missing {
		s.mu.Lock()
		s.made = append(s.made, path)
		s.mu.Unlock()
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p, err := openFile(f, e.size())
	if err != nil {
		f.Close()
	}
	return p, err
}

func (s *dirSink) writeFile(path string, e *encoded) (err error) {
	f, err := s.files.NewFile(path, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	if _, err := e.WriteTo(f); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Commit()
}

func (s *dirSink) close() error {
	if s.fallback == nil {
		return nil
	}
	return s.fallback.close()
}

// prepare creates the directory if needed and checks that files can be created in it.
func (s *dirSink) prepare() error {
	for dir := filepath.Clean(s.dir); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		s.made = append([]string{dir}, s.made...)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	return atomicfs.CheckFile(filepath.Join(s.dir, "probe"))
}

// undo removes created directories after a failure: a catalog that cannot be served leaves no partial cache. That is
// safe for other users, because only empty directories are removed and removed files can be read to their end.
func (s *dirSink) undo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range slices.Backward(s.made) {
		_ = os.Remove(path)
	}
	s.made = nil
}

// scratch stores cache files in one unnamed temporary file, so that nothing is left however the program ends. What
// cannot be written there stays in memory.
type scratch struct {
	log *slog.Logger

	mu     sync.Mutex
	opened bool
	file   *atomicfs.Scratch // nil if none could be created
	size   int64
}

func newScratch(log *slog.Logger) *scratch { return &scratch{log: log} }

// open creates the file when it is needed.
func (s *scratch) open() {
	if s.opened {
		return
	}
	s.opened = true
	f, err := atomicfs.NewScratch("", ".bindery-serve-*")
	if err != nil {
		s.log.Warn("no temporary file can be made: the catalog is kept in memory", "error", err)
		return
	}
	s.file = f
}

func (s *scratch) put(e *encoded) (*Package, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open()
	if s.file != nil {
		if _, err := e.WriteTo(io.NewOffsetWriter(s.file, s.size)); err != nil {
			s.log.Warn("a package is kept in memory", "package", e.name, "error",
				fmt.Errorf("write temporary file: %w", err))
		} else {
			r := io.NewSectionReader(s.file, s.size, e.size())
			s.size += e.size()
			return OpenPackage(r, e.size())
		}
	}
	file, err := e.bytes()
	if err != nil {
		return nil, err
	}
	file = bytes.Clone(file)
	return OpenPackage(bytes.NewReader(file), int64(len(file)))
}

func (s *scratch) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
