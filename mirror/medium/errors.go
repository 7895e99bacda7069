package medium

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Errors on which callers decide.
var (
	// ErrBusy is the error of [Create] if another process writes to the directory.
	ErrBusy = fault.New(fault.Conflict, "another process writes an archive here")
	// ErrTooLarge is the error of a file that is larger than a segment, with [Options.Strict].
	ErrTooLarge = errors.New("no archive is written")
	// ErrLeftOut is the error about a manifest or blob that was left out of the archive, because the destination was
	// expected to have it already. It is [fs.ErrNotExist].
	ErrLeftOut = fmt.Errorf("%w: left out of the archive, as the destination was to have it", fs.ErrNotExist)
)
