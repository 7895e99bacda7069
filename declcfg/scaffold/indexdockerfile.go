package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/dockerfile"
)

// DatabaseFile is the path of the database: relative to the build context in the Dockerfile, and relative to the root
// in the image.
const DatabaseFile = "database/index.db"

// databaseLabel names the path of the database in an index image.
const databaseLabel = "operators.operatorframework.io.index.database.v1"

// DatabaseDockerfile returns the Dockerfile of an index database at [DatabaseFile] with the same bytes as opm's. The
// binary image is the one that serves. Additional labels follow that of the index.
func DatabaseDockerfile(binaryImage string, labels map[string]string) (string, error) {
	if err := dockerfile.CheckImage("binary image", binaryImage); err != nil {
		return "", err
	}
	further, err := labelLines(labels)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("FROM %s\nLABEL %s=/%s\n%sADD %s /%s\nEXPOSE 50051\nENTRYPOINT [\"/bin/opm\"]\nCMD "+
		"[\"registry\", \"serve\", \"--database\", \"/%s\"]\n",
		binaryImage, databaseLabel, DatabaseFile, further, DatabaseFile, DatabaseFile, DatabaseFile), nil
}

// ErrNotGenerated is returned for an existing file that is not the Dockerfile of an index.
var ErrNotGenerated = errors.New("is not a Dockerfile of an index, and is not replaced")

// CheckDockerfile returns the error with which [ReplaceDockerfile] would fail immediately, if any.
func CheckDockerfile(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return atomicfs.CheckFile(path)
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: path, Err: ErrNotGenerated}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(databaseLabel)) && !bytes.Contains(text, []byte(configsLabel)) {
		return &fs.PathError{Op: "write", Path: path, Err: ErrNotGenerated}
	}
	return atomicfs.CheckFile(path)
}

// ReplaceDockerfile writes a Dockerfile of an index and replaces an existing one: a file without an index label is not
// replaced.
func ReplaceDockerfile(path, text string) error {
	if err := CheckDockerfile(path); err != nil {
		return err
	}
	return atomicfs.WriteFile(path, []byte(text), 0o666)
}
