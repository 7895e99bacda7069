package cliutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Pipe is a writer, such as standard output, that remembers whether its reader has gone away.
type Pipe struct {
	W      io.Writer
	broken bool
}

// Write writes to the underlying writer.
func (p *Pipe) Write(b []byte) (int, error) {
	n, err := p.W.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.broken = true
	}
	return n, err
}

// Broken is true once a write has failed because nobody reads any more.
func (p *Pipe) Broken() bool { return p.broken }

// Spool collects an answer and writes it only when it is complete, so that a failure half-way leaves nothing on standard
// output that looks like an answer. Up to Memory bytes are held in memory, more goes to a temporary file that has no
// name any more. A Spool is not safe for concurrent use.
type Spool struct {
	// Dir is where the temporary file is made; os.TempDir() where empty.
	Dir string
	// Memory is the number of bytes that are held in memory; 8 MiB where 0.
	Memory int

	buf   bytes.Buffer
	file  *os.File
	named bool
}

// Write adds b to the answer.
func (s *Spool) Write(b []byte) (int, error) {
	limit := s.Memory
	if limit == 0 {
		limit = 8 << 20
	}
	if s.file == nil && s.buf.Len()+len(b) > limit {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	if s.file != nil {
		return s.file.Write(b)
	}
	return s.buf.Write(b)
}

func (s *Spool) spill() error {
	f, err := os.CreateTemp(s.Dir, "bindery-answer-*")
	if err != nil {
		return fmt.Errorf("hold back the answer until it is complete: %w", err)
	}
	s.file = f
	// Without its name the file is gone whatever happens to the process. Where an open file cannot be removed, Close
	// does it.
	s.named = os.Remove(f.Name()) != nil
	_, err = f.Write(s.buf.Bytes())
	s.buf = bytes.Buffer{}
	return err
}

// Flush writes the whole answer to w.
func (s *Spool) Flush(ctx context.Context, w io.Writer) error {
	if s.file == nil {
		_, err := w.Write(s.buf.Bytes())
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := s.file.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Close gives the temporary file back. It must be called on every path out.
func (s *Spool) Close() error {
	s.buf = bytes.Buffer{}
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	s.file = nil
	return err
}
