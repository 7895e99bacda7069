package build

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/layers"
)

// indexLabels are the labels that mark an index image and contain the path of its catalog or database.
var indexLabels = [...]string{ConfigsLabel, DatabaseLabel}

// hidden returns the paths of the catalogs and databases of a base by their labels, relative to its root.
func (b *base) hidden() (map[string]string, error) {
	out := map[string]string{}
	for _, label := range indexLabels {
		at, ok := b.config.Config.Labels[label]
		if !ok {
			continue
		}
		name, err := archive.CleanPath(at)
		if err != nil || name == "" || holdsServer(name) {
			return nil, fmt.Errorf("the base image's label %s has the invalid path %.200q", label, at)
		}
		out[label] = name
	}
	return out, nil
}

// holdsServer reports whether hiding a path would hide the server's files.
func holdsServer(name string) bool {
	for _, p := range [...]string{cataloglayer.ServerPath, cataloglayer.ProbePath, cataloglayer.NsswitchPath, "tmp"} {
		if p == name || strings.HasPrefix(p, name+"/") {
			return true
		}
	}
	return false
}

// reset hides the catalogs and databases of bases. Otherwise the base's catalog would mix with the new one, and a
// server that checks its cache would not start with the base's. A file that the image replaces need not be hidden. The
// second result lists the hidden paths; the part has no entries if there are none.
//
// A directory is hidden by an opaque marker inside it, not by a whiteout next to it: catalogd drops every entry outside
// the catalog's directory before it applies whiteouts, so a whiteout next to it has no effect there.
func reset(bases []*base, own string) (part, []string, error) {
	directory := map[string]bool{} // by what is hidden: whether it is a directory
	var all []string
	for _, b := range bases {
		if b == nil {
			continue
		}
		hidden, err := b.hidden()
		if err != nil {
			return part{}, nil, err
		}
		if at, ok := hidden[DatabaseLabel]; ok {
			all = append(all, "/"+at)
			if _, known := directory[at]; !known {
				directory[at] = false
			}
		}
		if at, ok := hidden[ConfigsLabel]; ok {
			all = append(all, "/"+at)
			directory[at], directory[cataloglayer.CacheDir], directory[opmCacheDir] = true, true, true
			if strings.HasPrefix(at, cataloglayer.ConfigsDir+"/") {
				directory[cataloglayer.ConfigsDir] = true // the new catalog is all that is in it
			}
		}
	}
	slices.Sort(all)
	p := part{kind: LayerReset, layer: layers.Layer{Name: "reset"}}
	for _, name := range slices.Sorted(maps.Keys(directory)) {
		// A hidden directory hides its content.
		if name == own || within(name, directory) {
			continue
		}
		switch {
		case !directory[name]:
			p.layer.Entries = append(p.layer.Entries, layers.Whiteout(name))
		case name == opmCacheDir:
			// This directory is world-writable in images without a catalog in it, and must stay so.
			p.layer.Entries = append(p.layer.Entries, layers.Dir(name, 0o777|fs.ModeSticky), layers.Opaque(name))
		default:
			p.layer.Entries = append(p.layer.Entries, layers.Dir(name, 0o755), layers.Opaque(name))
		}
	}
	if slices.ContainsFunc(p.layer.Entries, func(e layers.Entry) bool { return strings.HasPrefix(e.Name, "tmp/") }) {
		// As an implicit parent directory it would lose its world-writable mode.
		p.layer.Entries = append(p.layer.Entries, layers.Dir("tmp", 0o777|fs.ModeSticky))
	}
	return p, slices.Compact(all), nil
}

// within reports whether a name is in one of the directories.
func within(name string, directory map[string]bool) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if directory[dir] {
			return true
		}
	}
	return false
}
