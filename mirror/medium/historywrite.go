package medium

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// writeHistory writes the file of a history. File systems without colons (FAT, some network shares) get dashes.
func writeHistory(workingDir, stamp string, text []byte) (string, error) {
	dir := filepath.Join(workingDir, historyDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	name := historyPrefix + stamp
	err := atomicfs.WriteFile(filepath.Join(dir, name), text, 0o644)
	if errors.Is(err, syscall.EINVAL) {
		name = historyPrefix + strings.ReplaceAll(stamp, ":", "-")
		err = atomicfs.WriteFile(filepath.Join(dir, name), text, 0o644)
	}
	return historyDir + "/" + name, err
}
