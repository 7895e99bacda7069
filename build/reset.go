package build

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/layers"
)

// indexLabels are the labels by which an image says that it is an index, and where its catalog or database is.
var indexLabels = [...]string{ConfigsLabel, DatabaseLabel}

// hidden are the places of the catalogs and databases that a base has, relative to its root and sorted.
func (b *base) hidden() ([]string, error) {
	var out []string
	for _, label := range indexLabels {
		at, ok := b.config.Config.Labels[label]
		if !ok {
			continue
		}
		name := strings.Trim(path.Clean("/"+at), "/")
		if name == "" || strings.Contains(at, "..") || holdsServer(name) {
			return nil, fmt.Errorf("the base image's label %s is %.200q, where no catalog can be", label, at)
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// holdsServer is true for what leads to the server's files: hiding it would hide them.
func holdsServer(name string) bool {
	for _, p := range [...]string{serverPath, probePath, nsswitchPath, "tmp"} {
		if p == name || strings.HasPrefix(p, name+"/") {
			return true
		}
	}
	return false
}

// reset hides the catalogs and databases that bases have already. A catalog together with the new one would be a third,
// and a server that insists on a cache without foreign packages would not start with the base's. The image's own file
// needs no hiding of what was in its place. The second result are the places; the part has no entries if there is nothing to
// hide.
func reset(bases []*base, own string) (part, []string, error) {
	var all, names []string
	for _, b := range bases {
		if b == nil {
			continue
		}
		hidden, err := b.hidden()
		if err != nil {
			return part{}, nil, err
		}
		all = append(all, hidden...)
		if _, ok := b.config.Config.Labels[ConfigsLabel]; ok {
			names = append(names, cacheDir, opmCacheDir)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	names = append(names, all...)
	slices.Sort(names)
	names = slices.Compact(names)
	p := part{kind: LayerReset, layer: layers.Layer{Name: "reset"}}
	for i, name := range names {
		// What lies in something that is hidden is hidden with it.
		if name == own || slices.ContainsFunc(names[:i], func(above string) bool { return strings.HasPrefix(name, above+"/") }) {
			continue
		}
		p.layer.Entries = append(p.layer.Entries, layers.Whiteout(name))
	}
	if slices.ContainsFunc(p.layer.Entries, func(e layers.Entry) bool { return strings.HasPrefix(e.Name, "tmp/") }) {
		// On the way to something in it, the directory would lose the mode by which everybody can write there.
		p.layer.Entries = append(p.layer.Entries, layers.Dir("tmp", 0o777|fs.ModeSticky))
	}
	for i := range all {
		all[i] = "/" + all[i]
	}
	return p, all, nil
}
