package images

import (
	"fmt"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ErrInvalid is the class of errors about input that breaks a rule of its format.
var ErrInvalid = fault.ErrInvalid

// ErrLimit is the class of errors about input that is bigger than it may be.
var ErrLimit = fault.ErrLimit

// ErrIntegrity is the class of errors about content that is not what its digest or size says.
var ErrIntegrity = fault.ErrIntegrity

// Limits that are no option: no real image comes near them.
const (
	maxManifest     = 4 << 20
	maxIndexEntries = 1000
	maxIndexDepth   = 4
	maxLayers       = 512
	maxComponent    = 255
	maxPath         = 1024
	maxDepth        = 32
	maxWanted       = 64 // paths that are extracted at a time
	maxWantedPath   = 4096
	maxWantedDepth  = 256
	maxZstdWindow   = 8 << 20
	// Highly repetitive layers are real up to some size; beyond it a high ratio is an attack.
	ratioBeyond = 64 << 20
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

func (l Limits) withDefaults() Limits {
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
	if l.Entries == 0 {
		l.Entries = 200_000
	}
	return l
}

// Limit names one of the [Limits] as a command line may name it.
type Limit string

// The limits that are options.
const (
	LimitCompressed   Limit = "max-download-size" // Limits.Compressed
	LimitUncompressed Limit = "max-image-size"    // Limits.Uncompressed
	LimitFile         Limit = "max-file-size"     // Limits.File
	LimitEntries      Limit = "max-entries"       // Limits.Entries
	LimitRatio        Limit = "max-ratio"         // Limits.Ratio
)

// LimitError is an error of the class [ErrLimit] about a limit that can be set. Its text names the limit's value and the
// limit itself.
type LimitError struct {
	Limit Limit
	Value int64
	// Seen is what there is more of.
	Seen string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: %s (limit %d, %s)", ErrLimit, e.Seen, e.Value, e.Limit)
}

// Unwrap returns [ErrLimit].
func (e *LimitError) Unwrap() error { return ErrLimit }

func limitf(l Limit, value int64, seen string, args ...any) error {
	return &LimitError{Limit: l, Value: value, Seen: fmt.Sprintf(seen, args...)}
}
