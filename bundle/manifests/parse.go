package manifests

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Parse reads rendered manifests: YAML or JSON documents, or lists of objects.
func Parse(name string, text []byte) ([]Object, error) {
	var out []Object
	err := objects(name, text, false, func(f found) error {
		u := f.object
		if len(out) >= maxObjects {
			return limit("more than %d objects", maxObjects)
		}
		o, err := newObject(u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), u.Object)
		out = append(out, o)
		return err
	})
	return out, err
}

// ParseDir reads the rendered manifests of a directory: its files *.yaml, *.yml, *.json and *.ndjson, in directories
// too, without kustomization files. The order is that of the names.
func ParseDir(fsys fs.FS) ([]Object, error) {
	f := &files{fsys: fsys}
	var out []Object
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if f.entries++; f.entries > maxEntries {
			return limit("more than %d files", maxEntries)
		}
		if e.IsDir() || !isManifest(path.Base(name)) {
			return nil
		}
		text, err := f.read(name)
		if err != nil {
			return err
		}
		more, err := Parse(name, text)
		if out = append(out, more...); len(out) > maxObjects {
			return limit("more than %d objects", maxObjects)
		}
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%w: no manifests", ErrInvalid)
	}
	return out, err
}

func isManifest(name string) bool {
	if strings.HasPrefix(name, ".") || strings.TrimSuffix(name, path.Ext(name)) == "kustomization" {
		return false
	}
	return slices.Contains([]string{".yaml", ".yml", ".json", ".ndjson"}, path.Ext(name))
}
