package option

import (
	"errors"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/transport"
)

// WithAttachmentHint adds to an error about a place that keeps no attachments what the command can do instead.
func (p *Session) WithAttachmentHint(object string, err error) error {
	if !errors.Is(err, transport.ErrNoAttachments) {
		return err
	}
	e := &cmdline.Error{Class: cmdline.ClassUsage, Object: object, Err: err}
	switch {
	case p.HasFlag("with"):
		e.Hint = "--with none copies the image alone"
	case p.HasFlag("sbom-file"):
		e.Hint = "write the image to one of these, and \"bindery copy --with none\" copies it from there; --sbom-file " +
			"writes the bill of materials to a file for any destination"
	default:
		e.Hint = "copy the image to one of these with \"bindery copy\" first"
	}
	return e
}
