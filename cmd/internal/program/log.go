package program

import (
	"io"
	"log/slog"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// NewLogger is [cmdline.NewLogger], with messages in the words of the name.
func (p *Program) NewLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	return cmdline.NewLogger(inWords{p, w}, format, level)
}

// inWords is a writer of messages in the words of the name.
type inWords struct {
	p *Program
	w io.Writer
}

func (o inWords) Write(line []byte) (int, error) {
	if _, err := io.WriteString(o.w, o.p.Words(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
