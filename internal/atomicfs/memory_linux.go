package atomicfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// NewMemory makes a [Scratch] in memory, for where no directory can be written, such as in a container with a read-only root.
// It counts as memory of the process's control group, not of Go's.
func NewMemory(name string) (*Scratch, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return &Scratch{File: os.NewFile(uintptr(fd), name)}, nil
}
