package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/render"
)

// imageName refuses a name that is not a full image name. Most are misspelled paths: a short name is never looked up in
// a default registry.
func imageName(ref, hint string) error {
	name, _, _ := strings.Cut(ref, ":")
	if transports.Row(transport.Name(name)) != nil {
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

// catalogHint returns a hint for a directory that was read as a catalog and is a bundle, or a part of one; otherwise it
// is empty.
func catalogHint(dir string) string {
	if isBundle(dir) {
		return fmt.Sprintf("%q is a bundle: check it with \"bundle validate\"", filepath.Clean(dir))
	}
	return bundleHint(dir)
}

// bundleHint returns a hint for a directory that is a part of a bundle; otherwise it is empty.
func bundleHint(dir string) string {
	dir = filepath.Clean(dir)
	if parent := filepath.Join(dir, ".."); isBundle(parent) {
		return fmt.Sprintf("%q is a part of the bundle %q", dir, parent)
	}
	return ""
}

func isBundle(dir string) bool {
	kind, err := render.Classify(dir)
	return err == nil && kind == render.BundleDirectory
}
