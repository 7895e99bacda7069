package web

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/serve/internal/catalogql"
)

// Limits of the answer to a query.
const (
	answerMemory = 256 << 10 // bytes; larger answers are in a file
	largestFile  = 64 << 20
	allFiles     = 4 * largestFile // of all clients, which may read slowly
	largestHere  = 8 << 20         // without a directory for files: they are in memory
	allHere      = 2 * largestHere
)

// errManyAnswers is returned when the answers that are being sent are as large as all may be.
var errManyAnswers = errors.New("too many large answers are being sent")

// answerFile holds an answer until it is sent. It is not safe for concurrent use.
type answerFile struct {
	memory       []byte
	file         *atomicfs.Scratch
	written      int64
	largest, all int64
	sum          *atomic.Int64 // of the sizes of all files
}

// Write implements [io.Writer]; it returns [catalogql.ErrTooLarge] for an answer that is larger than the limit, and
// [errManyAnswers].
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
	return a.append(b)
}

func (a *answerFile) append(b []byte) (int, error) {
	a.written += int64(len(b))
	if a.sum.Add(int64(len(b))) > a.all {
		return 0, errManyAnswers
	}
	return a.file.WriteAt(b, a.written-int64(len(b)))
}

// spill moves the answer to a file, or where there is no place for one to a file in memory.
func (a *answerFile) spill() (err error) {
	a.largest, a.all = largestFile, allFiles
	if a.file, err = atomicfs.NewScratch("", ".bindery-http-*"); err != nil {
		a.largest, a.all = largestHere, allHere
		if a.file, err = atomicfs.NewMemory("bindery-http"); err != nil {
			return catalogql.ErrTooLarge
		}
	}
	_, err = a.append(a.memory)
	a.memory = nil
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
		a.sum.Add(-a.written)
		a.file, a.written = nil, 0
	}
}
