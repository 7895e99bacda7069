package images

import (
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// The classes of errors, for use with [errors.Is].
var (
	// ErrInvalid is the class of errors about input that breaks a rule of its format.
	ErrInvalid = fault.ErrInvalid
	// ErrLimit is the class of errors about input that is larger than it may be.
	ErrLimit = fault.ErrLimit
	// ErrIntegrity is the class of errors about content that is not what its digest or size says.
	ErrIntegrity = fault.ErrIntegrity
	// ErrRegistry is the class of errors of registries, and of the way to them.
	ErrRegistry = fault.ErrRegistry
)

// Limits bound what is read out of an image. A zero field stands for its default. Sizes are in bytes.
type Limits = limit.Limits

// Limit names one of the [Limits] as a command line may name it.
type Limit = limit.Limit

// The limits that are options.
const (
	LimitCompressed   = limit.Compressed   // Limits.Compressed
	LimitUncompressed = limit.Uncompressed // Limits.Uncompressed
	LimitFile         = limit.File         // Limits.File
	LimitEntries      = limit.Entries      // Limits.Entries
	LimitRatio        = limit.Ratio        // Limits.Ratio
)

// LimitError is an error of the class [ErrLimit] about a limit that can be set. Its text names the limit's value and the
// limit itself.
type LimitError = limit.Error
