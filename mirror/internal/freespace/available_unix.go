//go:build unix

package freespace

import "golang.org/x/sys/unix"

// available asks the file system of a directory that exists.
func available(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
