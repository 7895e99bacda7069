package scaffold

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
)

// maxFileSize is the maximum size in bytes of a description or icon file. A larger package would not fit into one
// message of the catalog's API, whose clients accept 4 MiB.
const maxFileSize = 4 << 20

// limitError reports a file that exceeds a limit.
type limitError struct {
	Path        string
	Size, Limit int64
}

func (e *limitError) Error() string {
	return fmt.Sprintf("%q: %d bytes, more than the limit of %d", e.Path, e.Size, e.Limit)
}

// ErrorClass is that of a limit.
func (e *limitError) ErrorClass() fault.Class { return fault.Limit }

// PackageOptions are the optional parts of a package.
type PackageOptions struct {
	DefaultChannel  string
	DescriptionFile string // path of a text file, usually Markdown; its text is used unchanged
	IconFile        string // path of a picture
}

// Package returns the olm.package blob of a new package. The name is not checked: validating a catalog does that.
//
// Errors name the file that could not be read, or report that the icon is not a picture.
func Package(name string, o PackageOptions) (*declcfg.Package, error) {
	p := &declcfg.Package{Name: name, DefaultChannel: o.DefaultChannel}
	if o.DescriptionFile != "" {
		text, err := readFile("description", o.DescriptionFile)
		if err != nil {
			return nil, err
		}
		p.Description = string(text)
	}
	if o.IconFile != "" {
		data, err := readFile("icon", o.IconFile)
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			return nil, fmt.Errorf("detect icon mediatype: %q is an empty file", o.IconFile)
		}
		mediaType := imageType(data)
		if mediaType == "" {
			return nil, fmt.Errorf("detected invalid type %q: not an image", mediaType)
		}
		p.Icon = &declcfg.Icon{Data: data, MediaType: mediaType}
	}
	return p, nil
}

// readFile reads a regular file; what describes it in errors.
func readFile(what, path string) ([]byte, error) {
	// O_NONBLOCK: opening a FIFO must not wait for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s file: %w", what, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %q is not a regular file", what, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("read %s: %w", what,
			&limitError{Path: path, Size: max(info.Size(), int64(len(data))), Limit: maxFileSize})
	}
	return data, nil
}
