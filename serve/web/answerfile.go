package web

import (
	"bytes"
	"io"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/catalogql"
)

// Limits of the answer to a query.
const (
	answerMemory = 256 << 10 // bytes; larger answers are in a file
	largestFile  = 64 << 20
	largestHere  = 8 << 20 // without a directory for files
)

// answerFile holds an answer until it is sent. The zero value is empty. It is not safe for concurrent use.
type answerFile struct {
	memory  []byte
	file    *atomicfs.Scratch
	written int64
	largest int64
}

// Write implements [io.Writer]; it returns [catalogql.ErrTooLarge] for an answer that is larger than the limit.
func (a *answerFile) Write(b []byte) (int, error) {
	if a.file == nil && len(a.memory)+len(b) <= answerMemory {
		a.memory = append(a.memory, b...)
		return len(b), nil
	}
	if a.file == nil {
		if err := a.spill(); err != nil {
			return 0, err
		}
	}
	if a.written+int64(len(b)) > a.largest {
		return 0, catalogql.ErrTooLarge
	}
	n, err := a.file.WriteAt(b, a.written)
	a.written += int64(n)
	return n, err
}

// spill moves the answer to a file, or where there is no place for one to a file in memory.
func (a *answerFile) spill() (err error) {
	a.largest = largestFile
	if a.file, err = atomicfs.NewScratch("", ".bindery-http-*"); err != nil {
		a.largest = largestHere
		if a.file, err = atomicfs.NewMemory("bindery-http"); err != nil {
			return catalogql.ErrTooLarge
		}
	}
	n, err := a.file.WriteAt(a.memory, 0)
	a.written, a.memory = int64(n), nil
	return err
}

func (a *answerFile) size() int64 {
	if a.file == nil {
		return int64(len(a.memory))
	}
	return a.written
}

func (a *answerFile) reader() io.Reader {
	if a.file == nil {
		return bytes.NewReader(a.memory)
	}
	return io.NewSectionReader(a.file, 0, a.written)
}

func (a *answerFile) close() {
	if a.file != nil {
		a.file.Close()
		a.file = nil
	}
}
