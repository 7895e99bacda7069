package imagestore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/printable"
)

// ErrStore is the class of errors about stores of images that cannot be used here.
var ErrStore = errors.New("the store of images cannot be used")

// spec is the place of a store, as the containers tools write it in brackets before a name:
// [DRIVER@ROOT+RUNROOT:OPTION,OPTION]. Only the root is required. The zero value is the user's own store.
type spec struct {
	driver, root, runRoot string
	options               []string
}

// Name is the name of an image in a store.
type Name struct {
	// Place is the text in the brackets; empty for the user's own store.
	Place string
	// Image is a reference or, for reading, an ID.
	Image string
}

// Split splits [SPEC]NAME.
func Split(text string) (spec, name string, err error) {
	rest, ok := strings.CutPrefix(text, "[")
	if !ok {
		return "", text, nil
	}
	spec, name, ok = strings.Cut(rest, "]")
	if !ok {
		return "", "", errors.New("the place of the store does not end: want [DRIVER@ROOT+RUNROOT:OPTIONS]NAME")
	}
	if spec == "" {
		return "", "", errors.New("the place of the store is empty: leave [] out for the store that podman uses")
	}
	_, err = parseSpec(spec)
	return spec, name, err
}

// parseSpec parses the text in the brackets.
func parseSpec(text string) (spec, error) {
	var s spec
	if text == "" {
		return s, nil
	}
	if !printable.NoControl(text) {
		return s, errors.New("not the place of a store")
	}
	driver, rest, ok := strings.Cut(text, "@")
	if ok {
		if driver == "" {
			return s, errors.New("the driver of the store before @ is empty")
		}
		s.driver, text = driver, rest
	}
	text, options, ok := strings.Cut(text, ":")
	if ok {
		s.options = strings.Split(options, ",")
	}
	s.root, s.runRoot, _ = strings.Cut(text, "+")
	if s.root == "" {
		return s, errors.New("the root directory of the store is empty")
	}
	for _, dir := range []string{s.root, s.runRoot} {
		if dir != "" && !filepath.IsAbs(dir) {
			return s, fmt.Errorf("the directory %q of the store is not absolute", dir)
		}
	}
	return s, nil
}

// Tag returns the full name of an image that is written to a store. As in the other containers tools, a name without a
// host is of docker.io.
func Tag(name string) (reference.NamedTagged, error) {
	if name == "" {
		return nil, errors.New("the image has no name: want containers-storage:NAME[:TAG]")
	}
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return nil, err
	}
	if _, ok := named.(reference.Digested); ok {
		return nil, errors.New("an image is written under a tag, not under a digest")
	}
	tagged, ok := reference.TagNameOnly(named).(reference.NamedTagged)
	if !ok {
		return nil, errors.New("the name has no tag")
	}
	return tagged, nil
}

// HasHost tells whether a name begins with the host of a registry.
func HasHost(name string) bool {
	first, _, ok := strings.Cut(name, "/")
	return ok && (strings.ContainsAny(first, ".:") || first == "localhost")
}
