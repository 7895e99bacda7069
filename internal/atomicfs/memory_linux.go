package atomicfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// NewMemory returns a [Scratch] in memory (memfd), for places where no directory is writable, such as a container with
// a read-only root. The memory counts against the process's cgroup and is not part of Go's heap.
func NewMemory(name string) (*Scratch, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return &Scratch{File: os.NewFile(uintptr(fd), name)}, nil
}
