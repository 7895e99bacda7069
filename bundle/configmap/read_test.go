package configmap

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// Contents is the content of a ConfigMap.
type Contents struct {
	Package        string
	Channels       []string // as in the annotation, not trimmed
	DefaultChannel string
	SourceImage    string
	// Objects are sorted by key, which is the file name. CSV is the last ClusterServiceVersion among them; nil if there
	// is none.
	Objects []bundle.Object
	CSV     *bundle.Object
	// Skipped are the entries that are not objects, by key, with their decoded content.
	Skipped map[string]string
}

// Read reads the bundle in a ConfigMap. Each entry is one object, the first document of its file; other entries are
// skipped.
func Read(cm *ConfigMap) (*Contents, error) {
	data, err := cm.decoded()
	if err != nil {
		return nil, fmt.Errorf("failed to extract bundle from configmap - %w", err)
	}
	c := &Contents{
		Package:        cm.Annotations[bundle.AnnotationPackage],
		DefaultChannel: cm.Annotations[bundle.AnnotationDefaultChannel],
		SourceImage:    cm.Annotations[annotationSourceImage], Skipped: map[string]string{},
	}
	if channels := cm.Annotations[bundle.AnnotationChannels]; channels != "" {
		c.Channels = strings.Split(channels, ",")
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		object, ok := readObject(key, data[key])
		if !ok {
			c.Skipped[key] = data[key]
			continue
		}
		c.Objects = append(c.Objects, object)
		if object.Kind == "ClusterServiceVersion" {
			c.CSV = &object
		}
	}
	return c, nil
}

// decoded returns the files by key.
func (c *ConfigMap) decoded() (map[string]string, error) {
	data := maps.Clone(c.Data)
	if data == nil {
		data = map[string]string{}
	}
	if c.Annotations[annotationEncoding] != encodingGzip {
		return data, nil
	}
	left := int64(bundlefs.MaxTotal)
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		text, err := decode(c.BinaryData[key], min(left, bundlefs.MaxFile))
		if err != nil {
			return nil, fmt.Errorf("error decoding gzip-encoded bundle data: %s: %w", key, err)
		}
		left -= int64(len(text))
		data[key] = text
	}
	return data, nil
}

// decode reverses encode, for content of at most limit bytes.
func decode(text []byte, limit int64) (string, error) {
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text)))
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(content)) > limit {
		return "", fmt.Errorf("%w: more than %d bytes", ErrLimit, limit)
	}
	return string(content), z.Close()
}

// readObject reads the first document of an entry; ok is false if it is not an object.
func readObject(key, text string) (bundle.Object, bool) {
	doc, err := bundlefs.FirstDocument([]byte(text))
	if err != nil || bundlefs.Kind(doc) == "" {
		return bundle.Object{}, false
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(doc, &head); err != nil {
		return bundle.Object{}, false
	}
	return bundle.Object{
		File: key, Line: 1, APIVersion: head.APIVersion, Kind: head.Kind, Namespace: head.Metadata.Namespace,
		Name: head.Metadata.Name,
		JSON: doc, Size: int64(len(text)),
	}, true
}
