//go:build !unix

package filelock

import (
	"errors"
	"os"
)

// flock fails: this system does not have the call.
func flock(*os.File) error { return errors.ErrUnsupported }

func isBusy(error) bool { return false }

func isUnsupported(error) bool { return true }
