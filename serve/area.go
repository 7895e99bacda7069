package serve

import (
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

type logger = *slog.Logger

// area keeps records in a temporary file without a name, and in memory what cannot be written there. Appending is not safe
// for concurrent use; reading is, as soon as everything is there.
type area struct {
	log    logger
	opened bool
	file   *atomicfs.Scratch // nil where none could be made, or no more can be written
	inFile int64
	size   int64
	memory []areaPiece
}

type areaPiece struct {
	at   int64
	data []byte
}

func newArea(log logger) *area { return &area{log: log} }

// append adds bytes, which are copied, and returns where they are.
func (a *area) append(b []byte) int64 {
	at := a.size
	a.size += int64(len(b))
	if len(b) == 0 {
		return at
	}
	if !a.opened {
		a.opened = true
		f, err := atomicfs.NewScratch("", ".bindery-serve-*")
		if err != nil {
			a.log.Warn("no temporary file can be made: the catalog is kept in memory", "error", err)
		} else {
			a.file = f
		}
	}
	if a.file != nil && len(a.memory) == 0 {
		_, err := a.file.WriteAt(b, at)
		if err == nil {
			a.inFile = a.size
			return at
		}
		a.log.Warn("the rest of the catalog is kept in memory", "error", fmt.Errorf("write temporary file: %w", err))
	}
	a.memory = append(a.memory, areaPiece{at, slices.Clone(b)})
	return at
}

// ReadAt reads within what was appended at once.
func (a *area) ReadAt(b []byte, offset int64) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if offset < a.inFile {
		return a.file.ReadAt(b, offset)
	}
	i, found := slices.BinarySearchFunc(a.memory, offset, func(p areaPiece, offset int64) int {
		if p.at <= offset && offset < p.at+int64(len(p.data)) {
			return 0
		}
		return int(min(max(p.at-offset, -1), 1))
	})
	if !found {
		return 0, io.EOF
	}
	n := copy(b, a.memory[i].data[offset-a.memory[i].at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (a *area) close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
