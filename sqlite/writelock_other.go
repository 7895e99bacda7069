//go:build !unix

package sqlite

import "os"

// openNewLock opens nothing: this system has no file locks.
func openNewLock(string) (*os.File, error) { return nil, nil }
