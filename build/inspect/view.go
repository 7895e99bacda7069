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

// view is the merged file system of an image's layers, reduced to the relevant names.
type view struct{ root *vnode }

// vnode is a file or directory of a view.
type vnode struct {
	children map[string]*vnode
	e        entry
	layer    int // index of the layer that it comes from; -1 for a directory without an entry in any layer
}

// rootsOf returns the files and directories to examine: catalogs, caches, servers, and the programs that the images
// start.
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

// entrypoint returns the path of the program that the image starts, relative to the root; empty if it is not an
// absolute path.
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
		// Whiteouts apply to lower layers only, wherever they are in the archive: they come first.
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

// newFilteredView returns the tree that catalogd unpacks from a directory. catalogd drops all entries outside the
// directory, whiteouts included, and applies the rest with containerd's archive.Apply, which applies a whiteout at its
// position in the archive.
func newFilteredView(of []*facts, dir string) *view {
	v := &view{&vnode{layer: -1}}
	for n, f := range of {
		emptied := map[string]bool{} // a second opaque marker of a directory has no effect
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

// removeLower removes everything below the node that comes from a lower layer.
func (n *vnode) removeLower(layer int) {
	maps.DeleteFunc(n.children, func(_ string, child *vnode) bool {
		child.removeLower(layer)
		return child.layer != layer && len(child.children) == 0
	})
}

// find returns the node of a name; nil if the image does not have it.
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

// walk calls f for every name below a directory in sorted order, directories before their entries.
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

// cacheFormat derives the format of a cache from the names in its directory; empty if there is no cache.
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
