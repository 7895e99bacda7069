package cmdline

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/spool"
)

// Spool collects an answer and writes it when it is complete, so that a failure leaves nothing on standard output. A
// small answer is held in memory. A larger one is compressed into a [spool.Spool]: catalogs are repetitive, so few of
// them reach the disk, and those need a sixth of their size there. A Spool is not safe for concurrent use.
type Spool struct {
	// Dir is the directory of the temporary file; empty means os.TempDir().
	Dir string
	// Memory is the number of bytes that are held in memory; 8 MiB if 0. A quarter of it is for uncompressed bytes.
	Memory int

	plain  bytes.Buffer // the answer while it is small
	packer *s2.Writer
	packed *spool.Spool // the output of the packer
}

// packBlock is the size of a compressed block. It holds several bundles, which are similar to each other.
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
		if s.plain.Len()+len(b) <= s.memory()/4 {
			return s.plain.Write(b)
		}
		s.packed = spool.New(s.Dir, s.memory()*3/4)
		s.packer = s2.NewWriter(s.packed, s2.WriterConcurrency(1), s2.WriterBlockSize(packBlock))
		plain := s.plain.Bytes()
		s.plain = bytes.Buffer{}
		if _, err := s.packer.Write(plain); err != nil {
			return 0, err
		}
	}
	return s.packer.Write(b)
}

// Flush writes the whole answer to w. Nothing can be added afterwards.
func (s *Spool) Flush(ctx context.Context, w io.Writer) error {
	if s.packer == nil {
		_, err := w.Write(s.plain.Bytes())
		return err
	}
	if err := s.packer.Close(); err != nil {
		return fmt.Errorf("buffer the output: %w", err)
	}
	from := s.packed.Open(spool.Span{Len: s.packed.Len()})
	plain := ctxio.Reader{Ctx: ctx, R: s2.NewReader(from, s2.ReaderMaxBlockSize(packBlock))}
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, plain, make([]byte, packBlock))
	return err
}

// Close frees the memory and removes the temporary file. It must always be called.
func (s *Spool) Close() error {
	s.plain = bytes.Buffer{}
	if s.packed == nil {
		return nil
	}
	return s.packed.Close()
}
