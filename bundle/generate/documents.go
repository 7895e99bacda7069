package generate

import (
	"encoding/json"
	"errors"
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

const kindCSV = "ClusterServiceVersion"

// errNoCSV is returned for a directory without a ClusterServiceVersion, with the files that cannot be read.
var errNoCSV = errors.New("no " + kindCSV)

// findCSV returns the ClusterServiceVersion among the files of a directory, the first by file name, or [errNoCSV].
func findCSV(fsys fs.FS, dir string) (csv, error) {
	entries, err := bundlefs.Entries(fsys, dir)
	if err != nil {
		return csv{}, err
	}
	none := fmt.Errorf("%w in %q", errNoCSV, dir)
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		name := path.Join(dir, e.Name())
		data, err := bundlefs.ReadFile(fsys, name)
		if err != nil {
			return csv{}, err
		}
		doc, err := bundlefs.FirstDocument(data)
		if err != nil {
			none = fmt.Errorf("%w; %s is passed over: %w", none, name, err)
		}
		if err != nil || bundlefs.Kind(doc) != kindCSV {
			continue // files that are not objects are allowed among the manifests
		}
		var found csv
		if err := json.Unmarshal(doc, &found); err != nil {
			return csv{}, fmt.Errorf("%s: %w", name, bundlefs.TypeError(doc, err))
		}
		return found, nil
	}
	return csv{}, none
}
