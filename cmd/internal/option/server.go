package option

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// ServesItself warns that the running program becomes the server in an image.
func (p *Session) ServesItself() {
	p.Log.Warn(
		"this program was built without the embedded server and adds itself to the image instead; \"make build\" " +
			"embeds the server")
}

// WithServerHint adds a hint to the error about an unusable server, for the commands with --binary-image.
func WithServerHint(err error) error {
	var server *build.ServerError
	if !errors.As(err, &server) || server.Platform.Architecture == "" {
		return err
	}
	return &cmdline.Error{Class: cmdline.ClassUsage, Object: server.Platform.Architecture, Err: err,
		Hint: "--platform linux/" + runtime.GOARCH +
			" builds this platform only; --binary-image names an image with a server"}
}

// Report logs which server an image with a --binary-image has.
func (o *Base) Report(p *Session, image *build.Image) {
	base := o.BaseImage
	if base == "" || base == "scratch" {
		return
	}
	switch {
	case image.BaseServer != "":
		p.Log.Info(fmt.Sprintf("%s of %s serves the index", image.BaseServer, base))
	case o.ServerName == "":
		p.Log.Warn(
			fmt.Sprintf(
				"%s does not start opm: the embedded server was added (use --server base if the image has one as "+
					"/bin/opm)", base))
	}
	if len(image.Hidden) > 0 {
		p.Log.Warn(fmt.Sprintf("%s is an index: its %s is hidden in the new image, but remains in the inherited layers",
			base, strings.Join(image.Hidden, " and ")))
	}
}
