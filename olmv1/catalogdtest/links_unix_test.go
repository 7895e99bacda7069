//go:build unix

package catalogdtest_test

import (
	"syscall"
	"testing"
)

// links returns how many names a file has.
func links(t *testing.T, name string) int {
	t.Helper()
	var info syscall.Stat_t
	if err := syscall.Lstat(name, &info); err != nil {
		t.Fatal(err)
	}
	return int(info.Nlink)
}
