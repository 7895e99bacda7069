//go:build unix

package secret

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// openDescriptor returns the file of a descriptor that the program has inherited. A descriptor with the flag
// close-on-exec was not inherited: the program itself or the Go runtime has opened it.
func openDescriptor(n uint64, name string) (*os.File, error) {
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		e := cmdline.Usagef("the program was not given the descriptor %d", n)
		e.Hint = fmt.Sprintf("in a shell: %d<FILE", n)
		return nil, e
	}
	return os.NewFile(uintptr(n), name), nil
}
