//go:build unix

package option

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// openDescriptor returns the file of a descriptor that the program was started with. The descriptors of the program itself
// and of the Go runtime are closed in programs that are started, those that it was started with are not.
func openDescriptor(n uint64, name string) (*os.File, error) {
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		e := cmdline.Usagef("the program was not given the descriptor %d", n)
		e.Hint = fmt.Sprintf("in a shell: %d<FILE", n)
		return nil, e
	}
	return os.NewFile(uintptr(n), name), nil
}
