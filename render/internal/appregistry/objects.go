package appregistry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/indented"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// Objects returns the directory of a bundle whose manifests are in a catalog: each object, given as JSON, is in a file
// named after it.
func Objects(objects [][]byte) (fs.FS, error) {
	files := map[string][]byte{}
	count := map[string]int{}
	var budget indented.Budget
	for _, o := range objects {
		stem := objectName(o)
		name := stem + ".yaml"
		for files[manifestsDir+"/"+name] != nil {
			count[stem]++
			name = fmt.Sprintf("%s-%d.yaml", stem, count[stem]+1)
		}
		text, err := yamlout.AppendWithin(nil, o, &budget)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, fault.Quote(name), err)
		}
		files[manifestsDir+"/"+name] = text
	}
	return fs.Sub(bundlefs.Layout{Dirs: map[string]fs.FS{manifestsDir: nil}, Files: files}, manifestsDir)
}

// unsafe matches characters that should not be in file names.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// objectName returns the file name of an object without extension, as operator authors name it.
func objectName(object []byte) string {
	var o struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(object, &o) // an object without these fields gets a name too
	var name string
	switch o.Kind {
	case kindCSV:
		name = o.Metadata.Name + ".clusterserviceversion"
	case "CustomResourceDefinition":
		name = o.Metadata.Name + ".crd"
	default:
		name = strings.Join([]string{o.Metadata.Name, strings.ReplaceAll(o.APIVersion, "/", "_"),
			strings.ToLower(o.Kind)}, "_")
	}
	name = strings.TrimLeft(unsafe.ReplaceAllString(name, "-"), ".-_")
	const most = 200
	if len(name) > most {
		name = name[:most]
	}
	name = cmp.Or(name, "object")
	return name
}
