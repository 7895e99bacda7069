package appregistry

import (
	"encoding/json"
	"io/fs"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// view shows the directory of a bundle with the files of that bundle only. It hides subdirectories, package manifests,
// other bundles and names with a leading dot.
type view struct {
	fs.FS
	csv    string          // the file with the ClusterServiceVersion
	hidden map[string]bool // files of other bundles, possibly including this one
}

func (v view) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(v.FS, name)
	if err != nil {
		return nil, err
	}
	kept := make([]fs.DirEntry, 0, len(all))
	for _, e := range all {
		if !e.IsDir() && (!v.hidden[e.Name()] || e.Name() == v.csv) && !strings.HasPrefix(e.Name(), ".") {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// The names of the directories and files in the constructed bundle.
const (
	manifestsDir = "manifests"
	metadataDir  = "metadata"
)

// asBundle returns a bundle whose manifests are those in a directory of fsys.
func asBundle(fsys fs.FS, dir, csv string, hidden map[string]bool, annotations map[string]string) (fs.FS, error) {
	sub, err := fs.Sub(fsys, dir)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"annotations": annotations})
	if err != nil {
		return nil, err
	}
	return bundlefs.Layout{
		Dirs:  map[string]fs.FS{manifestsDir: view{sub, csv, hidden}, metadataDir: nil},
		Files: map[string][]byte{metadataDir + "/" + bundle.AnnotationsName: text},
	}, nil
}

// original returns the name in the tree of a file of a bundle from [asBundle].
func original(dir, name string) string {
	if rest, ok := strings.CutPrefix(name, manifestsDir+"/"); ok {
		return path.Join(dir, rest)
	}
	return dir
}
