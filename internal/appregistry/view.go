package appregistry

import (
	"encoding/json"
	"io/fs"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// view is the directory of a bundle as if it were the manifests of that bundle alone: without directories, the files of
// packages and other bundles, and what begins with a dot.
type view struct {
	fs.FS
	own    string          // the file with the ClusterServiceVersion
	hidden map[string]bool // those of others, and perhaps this one
}

func (v view) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(v.FS, name)
	if err != nil {
		return nil, err
	}
	kept := make([]fs.DirEntry, 0, len(all))
	for _, e := range all {
		if !e.IsDir() && (!v.hidden[e.Name()] || e.Name() == v.own) && !strings.HasPrefix(e.Name(), ".") {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// The names that a bundle's parts have in the bundle that is made of them.
const (
	manifestsDir = "manifests"
	metadataDir  = "metadata"
)

// asBundle is the tree of a bundle whose manifests are in a directory of fsys.
func asBundle(fsys fs.FS, dir, own string, hidden map[string]bool, annotations map[string]string) (fs.FS, error) {
	sub, err := fs.Sub(fsys, dir)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"annotations": annotations})
	if err != nil {
		return nil, err
	}
	return bundlefs.Layout{
		Dirs:  map[string]fs.FS{manifestsDir: view{sub, own, hidden}, metadataDir: nil},
		Files: map[string][]byte{metadataDir + "/" + bundle.AnnotationsName: text},
	}, nil
}

// original is the name in the tree of a file of a bundle that [asBundle] has made.
func original(dir, name string) string {
	if rest, ok := strings.CutPrefix(name, manifestsDir+"/"); ok {
		return path.Join(dir, rest)
	}
	return dir
}
