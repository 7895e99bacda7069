package render

import (
	"context"
	"fmt"
	"strings"
	"text/template"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
)

// ImageTemplate makes the image reference of a bundle that has none, from .Package, .Name and .Version.
type ImageTemplate struct{ t *template.Template }

// ParseImageTemplate reads a template of Go's text/template.
func ParseImageTemplate(text string) (*ImageTemplate, error) {
	t, err := template.New("image-ref-template").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	return &ImageTemplate{t}, nil
}

// maxImageReference is the longest image reference that a template may make, in bytes.
const maxImageReference = 4096

// Execute makes the reference of a bundle.
func (t *ImageTemplate) Execute(pkg, name, version string) (string, error) {
	var text strings.Builder
	data := struct{ Package, Name, Version string }{pkg, name, version}
	if err := t.t.Execute(&text, data); err != nil {
		return "", fmt.Errorf("failed templating image reference from bundle: %w", err)
	}
	if text.Len() > maxImageReference {
		return "", fmt.Errorf("failed templating image reference from bundle: it would have %d bytes (limit %d)", text.Len(), maxImageReference)
	}
	return text.String(), nil
}

// bundleImage renders the bundle in an image.
func bundleImage(_ context.Context, _ *images.Image, ref string, _ *Options) (*declcfg.Bundle, error) {
	return nil, fmt.Errorf("cannot render %s %q", BundleImage, ref)
}

// bundleDirectory renders the bundle in a directory.
func bundleDirectory(_ context.Context, dir string, _ *Options) (*declcfg.Bundle, error) {
	return nil, fmt.Errorf("cannot render %s %q", BundleDirectory, dir)
}
