// Package secret reads what no copy is kept of: keys, passphrases, passwords and tokens.
package secret

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// MaxSize is the largest secret in bytes.
const MaxSize = 64 << 10

// Read reads a secret from a file or from the descriptor fd:N that the program was given.
func Read(ctx context.Context, name string) ([]byte, error) {
	number, isDescriptor := strings.CutPrefix(name, "fd:")
	if !isDescriptor {
		return ReadFile(ctx, name)
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return nil, cmdline.Usagef("invalid descriptor %q, expected fd:N", name)
	}
	f, err := openDescriptor(n, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAtMost(f, MaxSize)
}

// ReadFile reads a secret from a file.
func ReadFile(ctx context.Context, name string) ([]byte, error) {
	f, err := regularfile.OpenNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAtMost(f, MaxSize)
}

// ReadAtMost reads everything, and fails if it is longer.
func ReadAtMost(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("longer than %d bytes", most)
	}
	return text, err
}

// WithoutLineEnd returns a secret without the line end after it, which editors and echo write.
func WithoutLineEnd(text []byte) []byte {
	if end := len(text) - 1; end >= 0 && text[end] == '\n' {
		text = text[:end]
	}
	if end := len(text) - 1; end >= 0 && text[end] == '\r' {
		text = text[:end]
	}
	return text
}
