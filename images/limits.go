package images

import (
	"github.com/operator-bindery/bindery/internal/limit"
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
