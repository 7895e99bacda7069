package serverbin

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"
)

// ProgramName is the name of the program in its layer.
const ProgramName = "bin/opm"

// Layer describes an embedded layer. Sizes are in bytes.
type Layer struct {
	Digest       digest.Digest `json:"digest"`
	DiffID       digest.Digest `json:"diffID"`
	Size         int64         `json:"size"`
	Uncompressed int64         `json:"uncompressed"`
	// Program and ProgramSize are the digest and size of the program in it.
	Program     digest.Digest `json:"program"`
	ProgramSize int64         `json:"programSize"`
}

// An embedded file is a layer, its description as JSON, the length of that in four bytes (little endian), and this
// mark.
const trailerMark = "bindery server layer 1\n"

// Trailer returns the bytes that follow the layer in an embedded file.
func (l Layer) Trailer() ([]byte, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return append(b, trailerMark...), nil
}

var errTrailer = errors.New("not a server layer: build it again with \"make servers\"")

// maxDescription is the maximum length of the JSON in a trailer, in bytes.
const maxDescription = 4096

// ReadTrailer reads the description from the end of an embedded file of size bytes.
func ReadTrailer(file io.ReaderAt, size int64) (*Layer, error) {
	end := make([]byte, min(size, maxDescription))
	if _, err := file.ReadAt(end, size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	rest, ok := bytes.CutSuffix(end, []byte(trailerMark))
	if !ok || len(rest) < 4 {
		return nil, errTrailer
	}
	rest, length := rest[:len(rest)-4], int(binary.LittleEndian.Uint32(rest[len(rest)-4:]))
	if length < 0 || len(rest) < length {
		return nil, errTrailer
	}
	l := &Layer{}
	trailer := int64(length + 4 + len(trailerMark))
	if err := json.Unmarshal(rest[len(rest)-length:], l); err != nil || l.Size != size-trailer {
		return nil, errTrailer
	}
	return l, nil
}
