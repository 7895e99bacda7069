package inspect

import (
	"archive/tar"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
)

// view is what an image shows of the names that matter: its layers put over one another.
type view struct{ root *vnode }

// vnode is a name of a view.
type vnode struct {
	children map[string]*vnode
	e        entry
	layer    int // that it comes from; -1 for a directory that no layer has an entry of
}

// rootsOf are the names of which everything matters: catalogs, caches, servers, and what the images start.
func rootsOf(s *images.Survey) map[string]bool {
	names := map[string]bool{configsDir: true, nativeDir: true, "tmp/cache": true}
	for name := range serverFiles {
		names[name] = true
	}
	for _, i := range s.Images {
		c := i.Config.Config
		for _, label := range []string{build.ConfigsLabel, build.DatabaseLabel} {
			names[clean(c.Labels[label])] = true
		}
		for _, dir := range cacheDirs(c) {
			names[dir] = true
		}
		names[entrypoint(c)] = true
	}
	delete(names, "")
	return names
}

// entrypoint is the program that an image starts, relative to its root; empty if it does not name one by its path.
func entrypoint(c v1.ImageConfig) string {
	words := slices.Concat(c.Entrypoint, c.Cmd)
	if len(words) == 0 || !path.IsAbs(words[0]) {
		return ""
	}
	return clean(words[0])
}

func newView(of []*facts) *view {
	v := &view{&vnode{layer: -1}}
	for n, f := range of {
		// What a layer removes is that of lower ones, wherever in it that stands.
		for _, e := range f.entries {
			if name, opaque, ok := e.hidden(); ok {
				v.remove(name, opaque)
			}
		}
		for _, e := range f.entries {
			if _, _, ok := e.hidden(); !ok && e.name != "." {
				v.add(n, e)
			}
		}
	}
	return v
}

// newFilteredView is what catalogd unpacks of a directory: it drops the entries outside it, whiteouts as well, and then
// follows containerd's archive.Apply, which applies a whiteout where it stands among the entries of its layer.
func newFilteredView(of []*facts, dir string) *view {
	v := &view{&vnode{layer: -1}}
	for n, f := range of {
		emptied := map[string]bool{} // a second marker of a directory finds nothing of lower layers any more
		for _, e := range f.entries {
			if e.name != dir && !strings.HasPrefix(e.name, dir+"/") {
				continue
			}
			switch name, opaque, whiteout := e.hidden(); {
			case whiteout && opaque:
				if at := v.find(name); at != nil && !emptied[name] {
					emptied[name] = true
					at.removeLower(n)
				}
			case whiteout:
				v.remove(name, false)
			default:
				v.add(n, e)
			}
		}
	}
	return v
}

// removeLower removes what is below the node and comes from layers under the given one.
func (n *vnode) removeLower(layer int) {
	maps.DeleteFunc(n.children, func(_ string, child *vnode) bool {
		child.removeLower(layer)
		return child.layer != layer && len(child.children) == 0
	})
}

// find is the node of a name; nil if the image does not have it.
func (v *view) find(name string) *vnode {
	at := v.root
	if name == "" {
		return at
	}
	for part := range strings.SplitSeq(name, "/") {
		if at = at.children[part]; at == nil {
			return nil
		}
	}
	return at
}

func (v *view) remove(name string, opaque bool) {
	if opaque {
		if n := v.find(name); n != nil {
			n.children = nil
		}
		return
	}
	dir, base := path.Split(name)
	if n := v.find(strings.TrimSuffix(dir, "/")); n != nil {
		delete(n.children, base)
	}
}

func (v *view) add(layer int, e entry) {
	at := v.root
	for part := range strings.SplitSeq(e.name, "/") {
		if at.children == nil {
			at.children = map[string]*vnode{}
		}
		next := at.children[part]
		if next == nil {
			next = &vnode{layer: -1, e: entry{kind: tar.TypeDir, mode: 0o755}}
			at.children[part] = next
		}
		at = next
	}
	if e.kind != tar.TypeDir {
		at.children = nil
	}
	at.e, at.layer = e, layer
}

// walk calls f for every name below a directory, sorted, directories before what is in them.
func (v *view) walk(dir string, f func(name string, n *vnode)) {
	var walk func(name string, n *vnode)
	walk = func(name string, n *vnode) {
		f(name, n)
		for _, base := range slices.Sorted(maps.Keys(n.children)) {
			walk(path.Join(name, base), n.children[base])
		}
	}
	if n := v.find(dir); n != nil {
		walk(dir, n)
	}
}

// cacheFormat infers from the names in a directory what cache is in it; empty if there is none.
func (v *view) cacheFormat(dir string) CacheFormat {
	n := v.find(dir)
	if n == nil || len(n.children) == 0 {
		return ""
	}
	has := func(name string) bool { return n.children[name] != nil }
	switch {
	case has("pogreb.v1"):
		return PogrebCache
	case has("cache"):
		return JSONCache
	}
	for name := range n.children {
		if strings.HasSuffix(name, ".cache") {
			return NativeCache
		}
	}
	return UnknownFormat
}
