//go:build unix

package atomicfs_test

import (
	"os"
	"syscall"
	"testing"
)

// TestMain sets the usual umask: modes of files are compared.
func TestMain(m *testing.M) {
	syscall.Umask(0o022)
	os.Exit(m.Run())
}
