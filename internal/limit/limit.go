// Package limit has the limits for reading images: sizes, counts and depths. Images are untrusted input.
package limit

import (
	"cmp"
	"fmt"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Limits that are not configurable: no real image comes near them.
const (
	MaxManifest     = 4 << 20
	MaxIndexEntries = 1000
	MaxIndexDepth   = 4
	MaxLayers       = 512
	MaxComponent    = 255
	MaxPath         = 1024
	MaxDepth        = 32
	MaxWanted       = 64 // paths that are extracted at a time
	MaxWantedPath   = 4096
	MaxWantedDepth  = 256
	MaxZstdWindow   = 8 << 20
	// Real layers can be highly repetitive up to this size; beyond it a high ratio indicates an attack.
	RatioBeyond = 64 << 20
)

// MaxMapping is the size in bytes of a file that maps the images of a mirror to their places, one entry for each image
// or repository: what is written for clusters and hosts, and read as a list of images to copy.
const MaxMapping = 64 << 20

// Limits bound what is read from an image. A zero field means its default. Sizes are in bytes.
type Limits struct {
	// Compressed is the maximum total size of the layers as transferred; 4 GiB by default.
	Compressed int64
	// Uncompressed is the maximum total size of the layers as archives; 8 GiB by default.
	Uncompressed int64
	// File is the maximum size of one extracted file; 64 MiB by default, 1 GiB for images.Image.CopyFile.
	File int64
	// Entries is the maximum number of entries of all archives; 200,000 by default.
	Entries int
	// Ratio is the maximum ratio of uncompressed to compressed size of a layer beyond its first 64 MiB; 200 by default.
	Ratio int64
	// Memory is how much of the extracted files is held in memory; the rest goes to a temporary file. 16 MiB by
	// default.
	Memory int64
}

// WithDefaults returns the limits with zeros replaced by defaults.
func (l Limits) WithDefaults() Limits {
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&l.Compressed, 4<<30)
	set(&l.Uncompressed, 8<<30)
	set(&l.File, 64<<20)
	set(&l.Ratio, 200)
	set(&l.Memory, 16<<20)
	l.Entries = cmp.Or(l.Entries, 200_000)
	return l
}

// Limit is the name of a configurable limit as command lines use it.
type Limit string

// The configurable limits.
const (
	Compressed   Limit = "max-download-size" // Limits.Compressed
	Uncompressed Limit = "max-image-size"    // Limits.Uncompressed
	File         Limit = "max-file-size"     // Limits.File
	Entries      Limit = "max-entries"       // Limits.Entries
	Ratio        Limit = "max-ratio"         // Limits.Ratio
)

// Error is an error of the class [fault.ErrLimit] about a configurable limit. Its text contains the limit's name and
// value.
type Error struct {
	Limit Limit
	Value int64
	// Seen describes what exceeds the limit.
	Seen string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v: %s (limit %d, %s)", fault.ErrLimit, e.Seen, e.Value, e.Limit)
}

// Unwrap returns [fault.ErrLimit].
func (e *Error) Unwrap() error { return fault.ErrLimit }

// Errorf returns an [Error] about a configurable limit.
func Errorf(l Limit, value int64, seen string, args ...any) error {
	return &Error{Limit: l, Value: value, Seen: fmt.Sprintf(seen, args...)}
}
