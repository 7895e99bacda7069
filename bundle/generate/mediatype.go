package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// errNoManifests is returned for a directory with neither a YAML or JSON file nor a Kubernetes object.
var errNoManifests = errors.New("contains no yaml files")

// detectMediaType classifies the manifests at the root of fsys as opm does: a Helm chart if there is a Chart.yaml with
// a name, registry+v1 if the first document of a file is a ClusterServiceVersion, otherwise plain.
// CustomResourceDefinitions alone are plain, and so is a directory whose ClusterServiceVersion cannot be parsed.
// Without any manifest the error is [errNoManifests].
func detectMediaType(fsys fs.FS) (bundle.MediaType, error) {
	if isChart(fsys) {
		return bundle.Helm, nil
	}
	entries, err := bundlefs.Entries(fsys, ".")
	if err != nil {
		return "", err
	}
	manifests := false
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := bundlefs.ReadFile(fsys, e.Name())
		if err != nil {
			return "", fmt.Errorf("unable to read file %s in bundle: %w", e.Name(), err)
		}
		kind := ""
		if doc, err := bundlefs.FirstDocument(data); err == nil {
			kind = bundlefs.Kind(doc)
		}
		if kind == kindCSV {
			return bundle.RegistryV1, nil
		}
		manifests = manifests || kind != "" || isManifestName(e.Name())
	}
	if !manifests {
		return "", errNoManifests
	}
	return bundle.Plain, nil
}

// warnOfUnread names the manifests that cannot be read: a ClusterServiceVersion may be among them.
func warnOfUnread(fsys fs.FS, warn func(string)) error {
	entries, err := bundlefs.Entries(fsys, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !isManifestName(e.Name()) {
			continue
		}
		data, err := bundlefs.ReadFile(fsys, e.Name())
		if err != nil {
			return err
		}
		if _, err := bundlefs.FirstDocument(data); err != nil {
			warn(fmt.Sprintf("%s cannot be read, and the media type is %q without it: %v", e.Name(), bundle.Plain, err))
		}
	}
	return nil
}

// isManifestName reports whether a file name has the extension of YAML or JSON.
func isManifestName(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// isChart reports whether the directory is a Helm chart.
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
