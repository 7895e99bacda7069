package program

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/indented"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
)

// PrintTable prints an answer as a table.
func (p *Program) PrintTable(header []string, rows ...[]string) error {
	// Through a spool: the blanks of a table can be many times its text.
	return p.Spooled(context.Background(), func(w io.Writer) error {
		return list.Table{Header: header, Rows: rows}.Write(w, printable.Cell)
	})
}

// ShortDigest returns enough of a digest to identify a layer of an image, marked as cut.
func ShortDigest(d digest.Digest) string {
	if text := d.Encoded(); len(text) > 12 {
		return text[:12] + "…"
	}
	return d.String()
}

// WhereListed says where all findings are, of which the log has only the number: in the file of the flag.
func WhereListed(flag, file string) string {
	switch file {
	case "":
		return fmt.Sprintf("--%s FILE lists it", flag)
	case "-":
		return fmt.Sprintf("the %s lists it", flag)
	}
	return fmt.Sprintf("%q lists it", file)
}

// Count formats a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// WriteAccount writes a value as JSON, without credentials, to the file that a flag names; "-" is standard output.
func (p *Program) WriteAccount(flag, path string, v any) (err error) {
	if path == "-" {
		return p.writeWhole(func(w io.Writer) error { return writeJSON(w, v, "  ", json.Marshal, redact.JSON) })
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("--%s: %w", flag, err)
		}
	}()
	f, err := atomicfs.NewFile(path, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	w := bufio.NewWriterSize(f, 64<<10)
	if err := errors.Join(writeJSON(w, v, "  ", json.Marshal, redact.JSON), w.Flush()); err != nil {
		return err
	}
	return f.Commit()
}

// writeJSON writes a value as JSON that encode makes and clean cleans, in parts.
func writeJSON(w io.Writer, v any, unit string, encode func(any) ([]byte, error), clean func([]byte) []byte) error {
	return indented.Write(cleaner{w, clean}, v, unit, encode)
}

// cleaner cleans what is written.
type cleaner struct {
	w     io.Writer
	clean func([]byte) []byte
}

func (c cleaner) Write(text []byte) (int, error) {
	if _, err := c.w.Write(c.clean(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Spooled prints an answer when it is complete.
func (p *Program) Spooled(ctx context.Context, write func(io.Writer) error) error {
	return p.printWhole(ctx, write, p.BeforeOutput)
}

// writeWhole writes to standard output when all is there that write writes.
func (p *Program) writeWhole(write func(io.Writer) error) error {
	return p.printWhole(context.Background(), write, nil)
}

// printWhole prints an answer when it is complete; before, unless nil, is called then.
func (p *Program) printWhole(ctx context.Context, write func(io.Writer) error, before func() error) (err error) {
	var answer cmdline.Spool
	defer func() { err = errors.Join(err, answer.Close()) }()
	w := bufio.NewWriterSize(&answer, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	return answer.Flush(ctx, p.Stdout)
}
