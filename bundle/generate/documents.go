package generate

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"

	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// csv has the used fields of a ClusterServiceVersion.
type csv struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Replaces string   `json:"replaces"`
		Skips    []string `json:"skips"`
	} `json:"spec"`
}

// kindCSV is the kind of a ClusterServiceVersion.
const kindCSV = "ClusterServiceVersion"

// findCSV returns the ClusterServiceVersion among the files of a directory, the first by file name; ok is false if
// there is none.
func findCSV(fsys fs.FS, dir string) (csv, bool, error) {
	entries, err := bundlefs.Entries(fsys, dir)
	if err != nil {
		return csv{}, false, err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		name := path.Join(dir, e.Name())
		data, err := bundlefs.ReadFile(fsys, name)
		if err != nil {
			return csv{}, false, err
		}
		doc, err := bundlefs.FirstDocument(data)
		if err != nil || bundlefs.Kind(doc) != kindCSV {
			continue // files that are not objects are allowed among the manifests
		}
		var found csv
		if err := json.Unmarshal(doc, &found); err != nil {
			return csv{}, false, fmt.Errorf("%s: %w", name, err)
		}
		return found, true, nil
	}
	return csv{}, false, nil
}
