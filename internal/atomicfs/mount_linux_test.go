package atomicfs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A volume that is mounted is filled: no directory can be renamed onto it.
func TestMountPointIsFilled(t *testing.T) {
	for put, commit := range map[string]func(*Dir) error{"Commit": (*Dir).Commit, "Replace": (*Dir).Replace} {
		t.Run(put, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "volume")
			check(t, os.Mkdir(dir, 0o755))
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=2770,uid=1000,gid=1001"); err != nil {
				t.Skipf("mounting a file system needs privileges: %v", err)
			}
			t.Cleanup(func() { check(t, syscall.Unmount(dir, 0)) })
			d, err := NewDir(dir)
			check(t, err)
			check(t, os.WriteFile(filepath.Join(d.Path(), "catalog.json"), []byte("{}"), 0o644))
			check(t, os.Chmod(d.Path(), 0o700))
			check(t, commit(d))
			info, err := os.Stat(dir)
			check(t, err)
			of := info.Sys().(*syscall.Stat_t)
			if is := list(t, dir); len(is) != 1 || is[0] != "catalog.json" || of.Uid != 1000 || of.Gid != 1001 || of.Mode&0o7777 != 0o2770 {
				t.Errorf("%v, user %d, group %d, mode %o", is, of.Uid, of.Gid, of.Mode)
			}
		})
	}
}
