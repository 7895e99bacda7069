//go:build !unix

package secret

import (
	"os"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// openDescriptor is for other systems.
func openDescriptor(uint64, string) (*os.File, error) {
	return nil, cmdline.Usagef("descriptors are not supported on this system: name a file")
}
