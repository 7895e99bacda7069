package bundlecheck

import (
	"io/fs"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// plain checks the manifests of a plain bundle: a flat directory of files with any Kubernetes objects.
func (r *run) plain() {
	for _, e := range r.list(r.b.ManifestsDir) {
		if name := path.Join(r.b.ManifestsDir, e.Name()); e.IsDir() {
			r.fail("sub-directory", inFile(name),
				"a directory within %s/: the manifests of a plain bundle are in one directory", r.b.ManifestsDir)
		}
	}
	type id struct{ group, kind, namespace, name string }
	seen := map[id]bundle.Object{}
	for _, o := range r.b.Objects {
		complete := true
		for _, part := range []struct{ name, value string }{{"apiVersion", o.APIVersion}, {"kind", o.Kind},
			{"metadata.name", o.Name}} {
			if part.value == "" {
				complete = false
				r.fail("object-invalid", placeIn(o, bundlefs.FieldPath(part.name)...),
					"document %d has no %s and is no Kubernetes object", o.Document+1, part.name)
			}
		}
		if !complete {
			continue
		}
		if strings.HasSuffix(o.Kind, "List") && strings.Contains(string(o.JSON), `"items":[`) {
			r.warn("object-list", placeIn(o, "kind"), "%s is a list of objects: write them as documents of their own",
				o.Kind)
		}
		group, _, ok := strings.Cut(o.APIVersion, "/")
		if !ok {
			group = ""
		}
		key := id{group, o.Kind, o.Namespace, o.Name}
		if other, ok := seen[key]; ok {
			r.fail("object-twice", placeIn(o, "metadata", "name"), "%s %q is in %s:%d too", o.Kind, o.Name, other.File,
				other.Line)
			continue
		}
		seen[key] = o
		r.metadataOf(o, true)
		r.objectSize(o)
	}
	if len(r.b.Objects) == 0 {
		r.fail("no-objects", inFile(r.b.ManifestsDir), "no bundle objects found")
	}
}

// chart returns the directory of a Helm chart in the bundle; empty if there is none.
func (r *run) chart() string {
	for _, dir := range []string{r.b.ManifestsDir, "."} {
		if _, err := fs.Stat(r.fsys, path.Join(dir, "Chart.yaml")); err == nil {
			return dir
		}
		entries, err := bundlefs.Entries(r.fsys, dir)
		if err != nil {
			continue // reported elsewhere if it matters
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			if _, err := fs.Stat(r.fsys, path.Join(dir, e.Name(), "Chart.yaml")); err == nil {
				return path.Join(dir, e.Name())
			}
		}
	}
	return ""
}

// helm checks that a chart has the required files.
func (r *run) helm() {
	dir := r.chart()
	name := path.Join(dir, "Chart.yaml")
	top := r.top(name)
	for _, key := range []string{"apiVersion", "name", "version"} {
		if len(top[key]) == 0 || string(top[key]) == `""` {
			r.fail("chart", inFile(name), "the chart has no %s", key)
		}
	}
	if info, err := fs.Stat(r.fsys, path.Join(dir, "templates")); err != nil || !info.IsDir() {
		r.warn("chart", inFile(dir), "the chart has no directory templates")
	}
}
