package scaffold

import (
	"context"
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// maxFileSize is the maximum size in bytes of a description or icon file. A larger package would not fit into one
// message of the catalog's API, whose clients accept 4 MiB.
const maxFileSize = 4 << 20

// PackageOptions are the optional parts of a package.
type PackageOptions struct {
	DefaultChannel  string
	DescriptionFile string // path of a text file, usually Markdown; its text is used unchanged
	IconFile        string // path of a picture
}

// NewPackage returns the olm.package blob of a new package. The name is not checked: validating a catalog does that.
//
// Errors name the file that could not be read, or report that the icon is not a picture.
func (o PackageOptions) NewPackage(ctx context.Context, name string) (*declcfg.Package, error) {
	p := &declcfg.Package{Name: name, DefaultChannel: o.DefaultChannel}
	if o.DescriptionFile != "" {
		text, err := readFile(ctx, "description", o.DescriptionFile)
		if err != nil {
			return nil, err
		}
		p.Description = string(text)
	}
	if o.IconFile != "" {
		data, err := readFile(ctx, "icon", o.IconFile)
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

// readFile reads a file that the user names; what describes it in errors.
func readFile(ctx context.Context, what, path string) ([]byte, error) {
	f, err := regularfile.OpenNamed(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open %s file: %w", what, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("read %s: %s: %w: longer than %d bytes", what, path, fault.ErrLimit, maxFileSize)
	}
	return data, nil
}
