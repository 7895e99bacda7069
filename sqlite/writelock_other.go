//go:build !unix

package sqlite

import "os"

// openNewLock opens nothing: files have no locks on this system.
func openNewLock(string) (*os.File, error) { return nil, nil }
