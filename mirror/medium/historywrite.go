package medium

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// writeStamped writes a file with a time in its name. File systems without colons (FAT, some network shares) get
// dashes.
func writeStamped(workingDir, in, prefix, stamp string, text []byte) (string, error) {
	dir, err := regularfile.MakeDir(workingDir, in)
	if err != nil {
		return "", err
	}
	name := prefix + stamp
	err = atomicfs.WriteFile(filepath.Join(dir, name), text, 0o644)
	if errors.Is(err, syscall.EINVAL) {
		name = prefix + strings.ReplaceAll(stamp, ":", "-")
		err = atomicfs.WriteFile(filepath.Join(dir, name), text, 0o644)
	}
	return in + "/" + name, err
}
