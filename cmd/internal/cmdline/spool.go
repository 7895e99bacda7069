package cmdline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// Spool collects an answer and writes it only when it is complete, so that a failure half-way leaves nothing on standard
// output that looks like an answer. A small one is held as it is. A larger one is compressed, in memory and then in a
// temporary file that has no name any more: catalogs repeat themselves, so that few of them get to the disk at all, and
// those that do take a sixth of their size there. A Spool is not safe for concurrent use.
type Spool struct {
	// Dir is where the temporary file is made; os.TempDir() where empty.
	Dir string
	// Memory is the number of bytes that are held in memory; 8 MiB where 0. A quarter of it is for what is not compressed.
	Memory int

	buf    bytes.Buffer // the answer, or the compressed answer
	packer *s2.Writer
	file   *atomicfs.Scratch
}

// packBlock is what is compressed at once. It holds several bundles, which resemble each other.
const packBlock = 1 << 20

func (s *Spool) memory() int {
	if s.Memory == 0 {
		return 8 << 20
	}
	return s.Memory
}

// Write adds b to the answer.
func (s *Spool) Write(b []byte) (int, error) {
	if s.packer == nil {
		if s.buf.Len()+len(b) <= s.memory()/4 {
			return s.buf.Write(b)
		}
		if err := s.pack(); err != nil {
			return 0, err
		}
	}
	return s.packer.Write(b)
}

// pack compresses from here on, what is held first.
func (s *Spool) pack() error {
	plain := s.buf.Bytes()
	// All of its room at once: growing would cost twice as much. Pages that are not used cost nothing.
	s.buf = *bytes.NewBuffer(make([]byte, 0, s.memory()*3/4))
	s.packer = s2.NewWriter(packed{s}, s2.WriterConcurrency(1), s2.WriterBlockSize(packBlock))
	_, err := s.packer.Write(plain)
	return err
}

// packed is where the compressed answer goes.
type packed struct{ *Spool }

func (p packed) Write(b []byte) (int, error) {
	s := p.Spool
	if s.file == nil && s.buf.Len()+len(b) > s.memory()*3/4 {
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
	f, err := atomicfs.NewScratch(s.Dir, "bindery-answer-*")
	if err != nil {
		return fmt.Errorf("hold back the answer until it is complete: %w", err)
	}
	s.file = f
	_, err = f.Write(s.buf.Bytes())
	s.buf = bytes.Buffer{}
	return err
}

// Flush writes the whole answer to w. Nothing can be added any more.
func (s *Spool) Flush(ctx context.Context, w io.Writer) error {
	if s.packer == nil {
		_, err := w.Write(s.buf.Bytes())
		return err
	}
	if err := s.packer.Close(); err != nil {
		return err
	}
	from := io.Reader(&s.buf)
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		from = s.file
	}
	plain := s2.NewReader(from, s2.ReaderMaxBlockSize(packBlock))
	buf := make([]byte, 1<<20)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := plain.Read(buf)
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
	s.file = nil
	return err
}
