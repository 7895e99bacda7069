package serve

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/operator-bindery/bindery/internal/redact"
)

// terminationLog is the file in which Kubernetes looks for the reason why a container ended.
type terminationLog struct {
	file *os.File
	log  *slog.Logger
}

// openTerminationLog opens the file at the start, so that a wrong path is reported then, as a warning.
func openTerminationLog(path string, log *slog.Logger) *terminationLog {
	t := &terminationLog{log: log}
	if path == os.DevNull {
		return t // an empty name means none
	}
	// Anything but a regular file is not opened: a FIFO would block the server.
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("unable to set termination log path", "error", err)
		return t
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		log.Warn("unable to set termination log path", "error", err)
		return t
	}
	t.file = f
	return t
}

// close writes the error, if there is one.
func (t *terminationLog) close(err error) {
	if t.file == nil {
		return
	}
	defer t.file.Close()
	if err == nil {
		return
	}
	if truncateErr := t.file.Truncate(0); truncateErr != nil {
		t.log.Warn("write termination log", "error", truncateErr)
		return
	}
	if _, writeErr := t.file.WriteString(redact.Text(err.Error()) + "\n"); writeErr != nil {
		t.log.Warn("write termination log", "error", writeErr)
	}
}
