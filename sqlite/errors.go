package sqlite

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	driver "modernc.org/sqlite"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Sentinel errors, for use with [errors.Is].
var (
	// ErrNotDatabase is returned for a file that is not a SQLite database.
	ErrNotDatabase = fault.New(fault.Input, "not a SQLite database")
	// ErrDamaged is returned for a database with a broken structure.
	ErrDamaged = fault.Advise(fault.New(fault.Integrity, "database is damaged"),
		"copy the database again from where it comes from")
	// ErrUnsupported is returned for an intact database that is not an index database, or that has objects which an
	// index database never has.
	ErrUnsupported = fault.New(fault.Input, "not an index database")
	// ErrLocked is returned if another process keeps the database locked for writing.
	ErrLocked = fault.New(fault.Local, "database is locked by another process")
	// errIO is returned if the system fails to open or read the file.
	errIO = fault.New(fault.Local, "cannot be read")
	// ErrWrite is returned if the system fails to write the file, as on a full disk.
	ErrWrite = fault.New(fault.Local, "cannot be written")
	// ErrLimit is returned if a limit of [Limits] is exceeded.
	ErrLimit = fault.ErrLimit
	// ErrInvalid is returned for invalid rows: broken JSON, an invalid version, and the like.
	ErrInvalid = fault.New(fault.Input, "invalid data")
	// ErrLoss is the class of a *[LossError].
	ErrLoss = fault.New(fault.Input, "an index database cannot hold the whole catalog")
)

// Primary result codes of SQLite, see https://www.sqlite.org/rescode.html.
const (
	codeBusy      = 5
	codeLocked    = 6
	codeNoMemory  = 7
	codeReadOnly  = 8
	codeInterrupt = 9
	codeIO        = 10
	codeCorrupt   = 11
	codeFull      = 13
	codeCantOpen  = 14
	codeTooBig    = 18
	codeNotADB    = 26
)

// classify wraps an error of the SQLite library with its sentinel.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var se *driver.Error
	if !errors.As(err, &se) {
		return err
	}
	switch se.Code() & 0xff {
	case codeBusy, codeLocked:
		return fmt.Errorf("%w: %w", ErrLocked, err)
	case codeCorrupt, codeNotADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case codeIO, codeFull, codeCantOpen:
		return fmt.Errorf("%w: %w", errIO, err)
	case codeTooBig, codeNoMemory:
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return err
}

// classifyWrite wraps an error of writing with the SQLite library with its sentinel.
func classifyWrite(ctx context.Context, err error) error {
	var se *driver.Error
	if err == nil || ctx.Err() != nil || !errors.As(err, &se) {
		return classify(ctx, err)
	}
	switch se.Code() & 0xff {
	case codeFull:
		return fmt.Errorf("%w: %w: %w", ErrWrite, syscall.ENOSPC, err)
	case codeIO, codeCantOpen, codeReadOnly:
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return classify(ctx, err)
}

// damaged reports whether an error of the SQLite library means that the file is damaged.
func damaged(err error) bool {
	var se *driver.Error
	return errors.As(err, &se) && (se.Code()&0xff == codeCorrupt || se.Code()&0xff == codeNotADB)
}
