package declcfg

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/filetx"
)

// fsWriter writes blobs to one file per package below root.
type fsWriter struct {
	root   string
	format Format

	pkg  string
	file *os.File
	buf  *bufio.Writer
	enc  *Encoder
}

func (w *fsWriter) write(b Blob) error {
	if pkg := b.BlobPackage(); w.file == nil || pkg != w.pkg {
		if err := w.closeFile(); err != nil {
			return err
		}
		if err := w.openFile(pkg); err != nil {
			return err
		}
	}
	return w.enc.Encode(b)
}

func (w *fsWriter) openFile(pkg string) error {
	dir := w.root
	if pkg != "" {
		if err := CheckDirectoryName(pkg); err != nil {
			return fmt.Errorf("package name %.300q %w", pkg, err)
		}
		dir = filepath.Join(dir, pkg)
		if err := os.Mkdir(dir, 0o777); err != nil {
			return fmt.Errorf("package %q: %w", pkg, err)
		}
	}
	file, err := os.OpenFile(filepath.Join(dir, "catalog."+w.format.Extension()), os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		0o666)
	if err != nil {
		return err
	}
	w.pkg, w.file = pkg, file
	if w.buf == nil {
		w.buf = bufio.NewWriterSize(nil, 64<<10)
		w.enc = w.format.NewEncoder(w.buf)
	}
	w.buf.Reset(file)
	return nil
}

func (w *fsWriter) closeFile() error {
	if w.file == nil {
		return nil
	}
	file := w.file
	w.file = nil
	err := w.buf.Flush()
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = atomicfs.SyncDir(filepath.Dir(file.Name()))
	}
	return err
}

// abandonFile closes a file that will be removed: the write error has been reported.
func (w *fsWriter) abandonFile() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// CheckDirectoryName returns an error, which continues a sentence about the name, if no directory of a catalog can have
// it: because it is no file name on every system, or because readers of catalogs do not read a directory of that name as
// such. That are ignore files, what Kubernetes puts into its volumes, and the staging directories of edits.
func CheckDirectoryName(name string) error {
	switch {
	case name == "" || name == "." || !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\\x00"):
		return errors.New("must be a single local path element")
	case name == IgnoreFile, strings.HasPrefix(name, ".."), strings.HasPrefix(name, filetx.Prefix):
		return errors.New("is not read as part of a catalog when a directory has it")
	}
	return nil
}
