package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// ErrNoManifests is the error of a directory without a single Kubernetes object.
var ErrNoManifests = errors.New("contains no yaml files")

// DetectMediaType tells what the manifests at the root of fsys are: a Helm chart if there is a Chart.yaml with a name,
// registry+v1 if there is a ClusterServiceVersion or a CustomResourceDefinition, else plain. Files that are no objects do
// not count; without any object the error is [ErrNoManifests].
func DetectMediaType(fsys fs.FS) (bundle.MediaType, error) {
	if isChart(fsys) {
		return bundle.Helm, nil
	}
	entries, err := bundlefs.Entries(fsys, ".")
	if err != nil {
		return "", err
	}
	objects := 0
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := bundlefs.ReadFile(fsys, e.Name())
		if err != nil {
			return "", fmt.Errorf("unable to read file %s in bundle: %w", e.Name(), err)
		}
		doc, err := bundlefs.FirstDocument(data)
		if err != nil {
			continue
		}
		switch bundlefs.Kind(doc) {
		case kindCSV, "CustomResourceDefinition":
			return bundle.RegistryV1, nil
		case "":
			continue
		}
		objects++
	}
	if objects == 0 {
		return "", ErrNoManifests
	}
	return bundle.Plain, nil
}

// isChart tells whether the directory is that of a Helm chart.
func isChart(fsys fs.FS) bool {
	data, err := bundlefs.ReadFile(fsys, "Chart.yaml")
	if err != nil {
		return false
	}
	doc, err := bundlefs.FirstDocument(data)
	if err != nil || doc == nil {
		return false
	}
	var chart struct {
		Name string `json:"name"`
	}
	return json.Unmarshal(doc, &chart) == nil && chart.Name != ""
}
