package bundle

import (
	"fmt"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/render"
)

// imageName refuses a name that is not a full image name. Most are misspelled paths: a short name is never looked up in
// a default registry.
func imageName(ref, hint string) error {
	name, _, _ := strings.Cut(ref, ":")
	if program.Transports.Row(transport.Name(name)) != nil {
		return nil
	}
	if _, err := reference.ParseNamed(ref); err != nil {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: ref, Hint: hint,
			Err: &render.NameError{Reference: ref, Reason: err}}
	}
	return nil
}

// notBundle returns an error for an image whose labels declare a catalog or a database.
func notBundle(ref string, labels map[string]string) error {
	kind, _, err := render.KindOfImage(labels)
	if err != nil || kind == render.BundleImage {
		return nil // an image without labels may be a bundle
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: ref,
		Err: fmt.Errorf("%q is a %s, not a bundle", ref, kind)}
}
