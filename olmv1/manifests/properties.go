package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/declcfg"
)

const (
	propertiesFile       = "metadata/properties.yaml"
	propertiesAnnotation = "olm.properties"
)

// Property is a property of a bundle in its files.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// RegistryV1Properties is the content of metadata/properties.yaml. The name of the type is in errors.
type RegistryV1Properties struct {
	Properties []Property `json:"properties"`
}

// readProperties merges metadata/properties.yaml into the annotation of the ClusterServiceVersion. The annotation is
// parsed also without the file, and left as it is then.
func (b *Bundle) readProperties(f *files) error {
	text, err := f.read(propertiesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &ReadError{propertiesFile, fmt.Errorf("failed to read properties.yaml file: %w", err)}
	}
	own, err := b.annotatedProperties()
	if err != nil || len(text) == 0 {
		return err
	}
	var content RegistryV1Properties
	if err := yaml.Unmarshal(text, &content); err != nil {
		return &ReadError{propertiesFile, fmt.Errorf("failed to unmarshal %s: %w", propertiesFile, realNames(err))}
	}
	return b.annotate(append(own, content.Properties...))
}

func (b *Bundle) annotatedProperties() ([]Property, error) {
	var own []Property
	text, ok := b.csv.Annotations[propertiesAnnotation]
	if !ok {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &own); err != nil {
		return nil, &ReadError{b.csvFile,
			fmt.Errorf("failed to unmarshal csv.metadata.annotations['olm.properties']: %w", realNames(err))}
	}
	return own, nil
}

func (b *Bundle) annotate(all []Property) error {
	text, err := compact(all)
	if err != nil {
		return &ReadError{propertiesFile, fmt.Errorf("failed to marshal registry+v1 properties to json: %w", err)}
	}
	if b.csv.Annotations == nil {
		b.csv.Annotations = map[string]string{}
	}
	b.csv.Annotations[propertiesAnnotation] = text
	return nil
}

// mergeProperties merges properties of a catalog into the annotation, except those that it has.
func (b *Bundle) mergeProperties(props []Property) error {
	own, err := b.annotatedProperties()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	key := func(p Property) string { return p.Type + "\x00" + jsonText(p.Value) }
	for _, p := range own {
		seen[key(p)] = true
	}
	more := slices.DeleteFunc(slices.Clone(props), func(p Property) bool { return seen[key(p)] })
	if len(more) == 0 {
		return nil
	}
	return b.annotate(append(own, more...))
}

// jsonText returns the value with sorted keys, for comparing.
func jsonText(value json.RawMessage) string {
	if text, err := sortedJSON(value); err == nil {
		return string(text)
	}
	return string(value)
}

// computed are the properties that a catalog computes from the manifests and dependencies of a bundle.
var computed = []string{"olm.package", "olm.gvk", "olm.package.required", "olm.gvk.required", "olm.constraint",
	"olm.bundle.object", "olm.csv.metadata", "olm.channel"}

// inferred returns the properties of a catalog's bundle that metadata/properties.yaml or the annotation declares.
func inferred(props []declcfg.Property) []Property {
	var out []Property
	for _, p := range props {
		if !slices.Contains(computed, p.Type) {
			out = append(out, Property{p.Type, p.Value})
		}
	}
	return out
}

// renamed is an error about a value of a type, which has the name of operator-controller's.
type renamed struct{ error }

func (e renamed) Error() string {
	return strings.ReplaceAll(e.error.Error(), "manifests.Property", "property.Property")
}
func (e renamed) Unwrap() error { return e.error }

func realNames(err error) error { return renamed{err} }
