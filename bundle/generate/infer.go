package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// inferredPackage has the values that the directory of a package gives for one of its bundles.
type inferredPackage struct {
	Name string
	// Channels are those that the bundle is in, sorted.
	Channels []string
	// DefaultChannel is that of the package; empty if it declares none and has several channels.
	DefaultChannel string
}

// packageManifest is package.yaml, the package manifest in directories from before bundles.
type packageManifest struct {
	PackageName string `json:"packageName"`
	Channels    []struct {
		Name       string `json:"name"`
		CurrentCSV string `json:"currentCSV"`
	} `json:"channels"`
	DefaultChannel string `json:"defaultChannel"`
}

// inferPackage looks up a bundle in the directory of its package: fsys has package.yaml and one directory per bundle;
// dir is the directory of the bundle. The bundle is in every channel whose head reaches its ClusterServiceVersion by
// replaces and skips.
func inferPackage(fsys fs.FS, dir string) (inferredPackage, error) {
	own, err := findCSV(fsys, dir)
	if err != nil {
		return inferredPackage{}, err
	}
	manifest, err := findPackageManifest(fsys)
	if err != nil {
		return inferredPackage{}, err
	}
	below, err := readEdges(fsys)
	if err != nil {
		return inferredPackage{}, err
	}
	p := inferredPackage{Name: manifest.PackageName, DefaultChannel: manifest.DefaultChannel}
	if p.DefaultChannel == "" && len(manifest.Channels) == 1 {
		p.DefaultChannel = manifest.Channels[0].Name
	}
	for _, c := range manifest.Channels {
		if hasPath(below, c.CurrentCSV, own.Metadata.Name) {
			p.Channels = append(p.Channels, c.Name)
		}
	}
	slices.Sort(p.Channels)
	p.Channels = slices.Compact(p.Channels)
	return p, nil
}

// findPackageManifest returns the package manifest, the first by file name.
func findPackageManifest(fsys fs.FS) (packageManifest, error) {
	entries, err := bundlefs.Entries(fsys, ".")
	if err != nil {
		return packageManifest{}, err
	}
	none := errors.New("no package.yaml in the directory above it")
	for _, e := range entries {
		if e.IsDir() || !isManifestName(e.Name()) {
			continue
		}
		data, err := bundlefs.ReadFile(fsys, e.Name())
		if errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return packageManifest{}, err
		}
		var m packageManifest
		doc, err := bundlefs.FirstDocument(data)
		if err == nil && doc != nil {
			if err = json.Unmarshal(doc, &m); err != nil {
				err = bundlefs.TypeError(doc, err)
			}
		}
		if err == nil && m.PackageName != "" {
			return m, nil
		}
		if err != nil {
			none = fmt.Errorf("%w; %s is passed over: %w", none, e.Name(), err)
		}
	}
	return packageManifest{}, none
}

// readEdges returns for each ClusterServiceVersion of a package which others it replaces or skips.
func readEdges(fsys fs.FS) (map[string][]string, error) {
	entries, err := bundlefs.Entries(fsys, ".")
	if err != nil {
		return nil, err
	}
	below := map[string][]string{}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		c, err := findCSV(fsys, e.Name())
		if err != nil && !errors.Is(err, errNoCSV) {
			return nil, err
		}
		if err == nil {
			below[c.Metadata.Name] = append(append(below[c.Metadata.Name], c.Spec.Replaces), c.Spec.Skips...)
		}
	}
	return below, nil
}

// hasPath reports whether there is a path from one name to another.
func hasPath(below map[string][]string, from, to string) bool {
	seen := map[string]bool{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if name == to {
			return true
		}
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		queue = append(queue, below[name]...)
	}
	return false
}
