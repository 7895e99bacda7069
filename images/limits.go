package images

import (
	"github.com/operator-bindery/bindery/internal/limit"
)

// Limits bound what is read from an image. Its fields are, with their defaults if they are zero:
//
//	Compressed   int64 // total size of the layers as transferred, in bytes: 4 GiB
//	Uncompressed int64 // total size of the layers as archives, in bytes: 8 GiB
//	File         int64 // size of one extracted file, in bytes: 64 MiB, or 1 GiB for CopyFile
//	Entries      int   // number of entries of all archives: 200,000
//	Ratio        int64 // of uncompressed to compressed size of a layer beyond its first 64 MiB: 200
//	Memory       int64 // how much of the extracted files is in memory and not in a temporary file, in bytes: 16 MiB
type Limits = limit.Limits
