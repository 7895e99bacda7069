package generate

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/bundle"
)

// The directories of a bundle in its annotations.
const (
	manifestsDir = "manifests/"
	metadataDir  = "metadata/"
)

// The names of the generated files.
const (
	annotationsFile = "annotations.yaml"
	dockerfileName  = "bundle.Dockerfile"
)

// Metadata has the values of a bundle's annotations. Channels is a comma-separated list and is written unchanged. An
// empty DefaultChannel is omitted; so are an empty Package and Channels if the media type is plain+v0, which does not
// need them.
type Metadata struct {
	MediaType      bundle.MediaType
	Package        string
	Channels       string
	DefaultChannel string
}

// pair is one annotation, which is also a label.
type pair struct{ key, value string }

// pairs returns the annotations in the order of a Dockerfile.
func (m Metadata) pairs() []pair {
	all := []pair{
		{bundle.AnnotationMediaType, string(m.MediaType)},
		{bundle.AnnotationManifests, manifestsDir},
		{bundle.AnnotationMetadata, metadataDir},
	}
	if m.Package != "" || m.MediaType != bundle.PlainV0 {
		all = append(all, pair{bundle.AnnotationPackage, m.Package})
	}
	if m.Channels != "" || m.MediaType != bundle.PlainV0 {
		all = append(all, pair{bundle.AnnotationChannels, m.Channels})
	}
	if m.DefaultChannel != "" {
		all = append(all, pair{bundle.AnnotationDefaultChannel, m.DefaultChannel})
	}
	return all
}

// Map returns the annotations by key.
func (m Metadata) Map() map[string]string {
	out := map[string]string{}
	for _, p := range m.pairs() {
		out[p.key] = p.value
	}
	return out
}

// check refuses text that cannot be an annotation.
func (m Metadata) check() error {
	var errs []error
	for _, p := range m.pairs() {
		if !utf8.ValidString(p.value) || strings.ContainsFunc(p.value, unicode.IsControl) {
			errs = append(errs, fmt.Errorf("annotation %s: invalid value %.80q", p.key, p.value))
		}
	}
	return errors.Join(errs...)
}

// annotationsText is the structure of annotations.yaml.
type annotationsText struct {
	Annotations map[string]string `yaml:"annotations"`
}

// Annotations returns the text of annotations.yaml: keys sorted, indented by two spaces.
func (m Metadata) Annotations() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(annotationsText{m.Map()}); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

// FromAnnotations returns the metadata in the annotations of a bundle.
func FromAnnotations(a map[string]string) Metadata {
	return Metadata{
		MediaType: bundle.MediaType(a[bundle.AnnotationMediaType]), Package: a[bundle.AnnotationPackage],
		Channels: a[bundle.AnnotationChannels], DefaultChannel: a[bundle.AnnotationDefaultChannel],
	}
}
