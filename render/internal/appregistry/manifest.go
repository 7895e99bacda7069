package appregistry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
)

// ManifestName is the file name under which package manifests are written.
const ManifestName = "package.yaml"

// Manifest is the content of a package manifest.
type Manifest struct {
	Package        string            `json:"packageName" yaml:"packageName"`
	Channels       []ManifestChannel `json:"channels" yaml:"channels"`
	DefaultChannel string            `json:"defaultChannel" yaml:"defaultChannel"`
}

// ManifestChannel is a channel with the name of its head.
type ManifestChannel struct {
	Name       string `json:"name" yaml:"name"`
	CurrentCSV string `json:"currentCSV" yaml:"currentCSV"`
}

// Default returns the default channel: the declared one, or the only one. It is empty if neither exists.
func (m Manifest) Default() string {
	if m.DefaultChannel == "" && len(m.Channels) == 1 {
		return m.Channels[0].Name
	}
	return m.DefaultChannel
}

// Text returns the file's content with the same bytes as opm.
func (m Manifest) Text() ([]byte, error) {
	if m.Channels == nil {
		m.Channels = []ManifestChannel{}
	}
	return yaml.Marshal(m)
}

// isManifestName reports whether a file has a usual name of package manifests; such a file must be one.
func isManifestName(name string) bool {
	base := strings.ToLower(path.Base(name))
	for _, end := range []string{".yaml", ".yml", ".json"} {
		if stem, ok := strings.CutSuffix(base, end); ok && (stem == "package" || strings.HasSuffix(stem, ".package")) {
			return true
		}
	}
	return false
}

// document is the first document of a file.
type document struct {
	json []byte
	line int
}

// firstDocument decodes the first document of a text; it is empty if there is none.
func firstDocument(text []byte, limits canon.Limits) (document, error) {
	d, err := canon.NewSplitter(bytes.NewReader(text), limits).Next()
	if err == io.EOF {
		return document{}, nil
	}
	if err != nil {
		return document{line: d.Line}, err
	}
	c := canon.Converter{Limits: limits}
	out, err := c.Append(nil, d)
	return document{out, d.Line}, err
}

// head holds the fields that identify the kind of a document.
type head struct {
	Kind        json.RawMessage `json:"kind"`
	Schema      json.RawMessage `json:"schema"`
	PackageName json.RawMessage `json:"packageName"`
}

// head decodes the identifying fields; ok is false if the document is not an object.
func (d document) head() (h head, ok bool) {
	if len(d.json) == 0 || d.json[0] != '{' {
		return h, false
	}
	return h, json.Unmarshal(d.json, &h) == nil
}

// isManifest reports whether a document is a package manifest and not a Kubernetes object or a blob of a catalog.
func (h head) isManifest() bool {
	return textOf(h.PackageName) != "" && h.Kind == nil && h.Schema == nil
}

// textOf returns the value if it is a string; otherwise it returns "".
func textOf(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

func parseManifest(d document) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(d.json, &m); err != nil {
		return m, fmt.Errorf("no package manifest: %w", bundlefs.TypeError(d.json, err))
	}
	if m.Package == "" {
		return m, fmt.Errorf("name of package (packageName) is missing")
	}
	return m, nil
}
