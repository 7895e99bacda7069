// Package limit bounds what is read out of images: sizes, counts and depths. Images come from outside.
package limit

import (
	"cmp"
	"fmt"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Limits that cannot be set: no real image comes near them.
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
	// Highly repetitive layers are real up to some size; beyond it a high ratio is an attack.
	RatioBeyond = 64 << 20
)

// Limits bound what is read out of an image. A zero field stands for its default. Sizes are in bytes.
type Limits struct {
	// Compressed bounds the sum of the layers as they are transported; 4 GiB by default.
	Compressed int64
	// Uncompressed bounds the sum of the layers as archives; 8 GiB by default.
	Uncompressed int64
	// File bounds one wanted file; 64 MiB by default, and 1 GiB for [Image.CopyFile].
	File int64
	// Entries bounds the entries of all archives; 200,000 by default.
	Entries int
	// Ratio bounds how many times as long a layer may be uncompressed as compressed, past its first 64 MiB; 200 by default.
	Ratio int64
	// Memory is how much of the wanted files is kept in memory; what is more goes to a temporary file. 16 MiB by default.
	Memory int64
}

// WithDefaults returns the limits with defaults in place of zeros.
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

// Limit names one of the [Limits] as a command line may name it.
type Limit string

// The limits that are options.
const (
	Compressed   Limit = "max-download-size" // Limits.Compressed
	Uncompressed Limit = "max-image-size"    // Limits.Uncompressed
	File         Limit = "max-file-size"     // Limits.File
	Entries      Limit = "max-entries"       // Limits.Entries
	Ratio        Limit = "max-ratio"         // Limits.Ratio
)

// Error is an error of the class [fault.ErrLimit] about a limit that can be set. Its text names the limit's value and the
// limit itself.
type Error struct {
	Limit Limit
	Value int64
	// Seen is what there is more of.
	Seen string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v: %s (limit %d, %s)", fault.ErrLimit, e.Seen, e.Value, e.Limit)
}

// Unwrap returns [fault.ErrLimit].
func (e *Error) Unwrap() error { return fault.ErrLimit }

// Errorf returns an [Error] about a limit that can be set.
func Errorf(l Limit, value int64, seen string, args ...any) error {
	return &Error{Limit: l, Value: value, Seen: fmt.Sprintf(seen, args...)}
}
