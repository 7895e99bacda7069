package cmdline

import (
	"errors"
	"io"
	"syscall"
)

// Pipe is a writer, such as standard output, that records whether its reader has closed the pipe.
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

// Broken reports whether a write has failed because the reader closed the pipe.
func (p *Pipe) Broken() bool { return p.broken }
