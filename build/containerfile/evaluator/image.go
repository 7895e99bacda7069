//go:build !nobuildah

package evaluator

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
)

// imageTree is the file tree of an image. Layers are listed when a path is first looked up. File contents are fetched
// when they are copied: that reads the layers a second time, by then from the blob cache.
type imageTree struct {
	image  *images.Image
	limits images.Limits
	spool  *fileSpool
	node   *node
	nodes  int // including whiteouts
}

func newImageTree(img *images.Image, limits images.Limits, s *fileSpool) *imageTree {
	t := &imageTree{image: img, limits: limits, spool: s}
	t.node = &node{kind: layers.KindDir, mode: 0o755, load: t.list}
	return t
}

// imageFile is a file in a layer. Its bytes are in the spool after it has been fetched.
type imageFile struct {
	t     *imageTree
	layer int
	entry int // index of the entry in the layer
	data  content
}

func (f *imageFile) id() string {
	return fmt.Sprintf("%s %d", f.t.image.Layers[f.layer].Digest, f.entry)
}

func (f *imageFile) open() (io.ReadCloser, error) {
	if f.data == nil {
		return nil, errNotReady
	}
	return f.data.open()
}

// list reads the headers of all layers from the bottom up.
func (t *imageTree) list(ctx context.Context) (map[string]*node, error) {
	root := newDir()
	r := images.NewLayerReader(t.limits)
	for n := range t.image.Layers {
		l := &layerList{t: t, root: root, layer: n, seen: map[*node]bool{}}
		if _, err := r.Read(ctx, t.image, n,
			func(name string, h *tar.Header, _ io.Reader) error { return l.add(name, h) }); err != nil {
			return nil, fmt.Errorf("image %.300q: %w", t.image.Name, err)
		}
	}
	*t.node = node{kind: layers.KindDir, mode: 0o755, uid: root.uid, gid: root.gid, children: root.children}
	return root.children, nil
}

// layerList applies the entries of one layer to the tree of the layers below.
type layerList struct {
	t     *imageTree
	root  *node
	layer int
	n     int
	seen  map[*node]bool // nodes of this layer
}

func (l *layerList) add(name string, h *tar.Header) error {
	entry := l.n
	l.n++
	if name == "." {
		return nil
	}
	dir, base := path.Split(name)
	parent, err := l.parent(dir)
	if err != nil {
		return err
	}
	if hidden, ok := strings.CutPrefix(base, ".wh."); ok {
		switch {
		case hidden == ".wh..opq":
			for child, n := range parent.children {
				if !l.seen[n] {
					delete(parent.children, child)
				}
			}
		case strings.HasPrefix(hidden, ".wh."), hidden == "", hidden == ".", hidden == "..":
		case parent.children[hidden] != nil && !l.seen[parent.children[hidden]]:
			delete(parent.children, hidden)
		}
		return nil
	}
	n := &node{mode: h.FileInfo().Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky), uid: h.Uid,
		gid: h.Gid, xattrs: xattrs(h)}
	switch h.Typeflag {
	case tar.TypeDir:
		n.kind, n.children = layers.KindDir, map[string]*node{}
		if was := parent.children[base]; was != nil && was.isDir() {
			n.children = was.children
		}
	case tar.TypeReg:
		n.kind, n.size, n.data = layers.KindFile, h.Size, &imageFile{t: l.t, layer: l.layer, entry: entry}
	case tar.TypeSymlink:
		n.kind, n.mode, n.link = layers.KindSymlink, fs.ModePerm, h.Linkname
	case tar.TypeLink:
		to, err := l.find(h.Linkname)
		if err != nil {
			return fmt.Errorf("hard link %.200q: %w", name, err)
		}
		same := *to // the hard link's node belongs to this layer, wherever the bytes are
		n = &same
	default:
		n.kind = special
	}
	parent.children[base] = n
	l.seen[n] = true
	return nil
}

// parent returns the directory of an entry. Anything in its path that is not a directory is replaced, as when layers
// are unpacked. Symbolic links are not followed: no builder writes layers that need that.
func (l *layerList) parent(dir string) (*node, error) {
	if l.t.nodes++; l.t.nodes > maxNodes {
		return nil, fmt.Errorf("%w: more than %d files and directories", errLimit, maxNodes)
	}
	at := l.root
	for name := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if name == "" || name == "." {
			continue
		}
		next := at.children[name]
		if next == nil || !next.isDir() {
			next = newDir()
			l.t.nodes++
			at.children[name] = next
			l.seen[next] = true
		}
		at = next
	}
	return at, nil
}

// find returns the target of a hard link.
func (l *layerList) find(name string) (*node, error) {
	at := l.root
	for part := range strings.SplitSeq(path.Clean("/" + name)[1:], "/") {
		if at = at.children[part]; at == nil {
			return nil, fmt.Errorf("%.200q does not exist", name)
		}
	}
	if at.isDir() {
		return nil, fmt.Errorf("%.200q is a directory", name)
	}
	return at, nil
}

// xattrs returns the extended attributes that buildah copies as well.
func xattrs(h *tar.Header) map[string]string {
	var kept map[string]string
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, "SCHILY.xattr.")
		if !ok || name != "security.capability" && name != "security.ima" && !strings.HasPrefix(name, "user.") {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = value
	}
	return kept
}

// fetchAll fetches the contents of all nodes that are files of images, with one pass over each image.
func fetchAll(ctx context.Context, nodes []*node) error {
	wanted := map[*imageTree]map[int]map[int]*imageFile{}
	for _, n := range nodes {
		f, ok := n.data.(*imageFile)
		if !ok || f.data != nil {
			continue
		}
		if wanted[f.t] == nil {
			wanted[f.t] = map[int]map[int]*imageFile{}
		}
		if wanted[f.t][f.layer] == nil {
			wanted[f.t][f.layer] = map[int]*imageFile{}
		}
		wanted[f.t][f.layer][f.entry] = f
	}
	for t, of := range wanted {
		r := images.NewLayerReader(t.limits)
		for _, n := range slices.Sorted(maps.Keys(of)) {
			if err := t.fetchLayer(ctx, r, n, of[n]); err != nil {
				return fmt.Errorf("image %.300q: %w", t.image.Name, err)
			}
		}
	}
	return nil
}

// fetchLayer fetches files of one layer. It reads the layer to its end: only then is its digest verified, and no file
// is used before.
func (t *imageTree) fetchLayer(ctx context.Context, r *images.LayerReader, layer int, files map[int]*imageFile) error {
	got := map[int]content{}
	entry := 0
	_, err := r.Read(ctx, t.image, layer, func(_ string, h *tar.Header, data io.Reader) error {
		f := files[entry]
		entry++
		if f == nil {
			return nil
		}
		c, err := t.spool.add(ctx, data, h.Size)
		got[f.entry] = c
		return err
	})
	if err != nil {
		return err
	}
	for n, f := range files {
		if got[n] == nil {
			return fmt.Errorf("%w: layer %d has changed", images.ErrIntegrity, layer)
		}
		f.data = got[n]
	}
	return nil
}
