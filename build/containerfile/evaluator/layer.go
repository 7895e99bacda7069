//go:build !nobuildah

package evaluator

import (
	"context"
	"fmt"
	"path"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/layers"
)

// entriesOf returns the entries of the stage's layer. Unchanged parent directories from lower layers are included with
// their attributes, as an entry without them would change them. Equal ids mean equal entries.
func entriesOf(ctx context.Context, root *node) (entries []layers.Entry, id string, err error) {
	ids := digest.SHA256.Digester()
	var emit func(name string, n *node, above []layers.Entry) error
	written := map[string]bool{}
	add := func(e layers.Entry, data string) {
		entries = append(entries, e)
		fmt.Fprintf(ids.Hash(), "%q %d %o %d %d %d %q %q %s\n", e.Name, e.Kind, e.Mode, e.UID, e.GID, e.Size, e.Link,
			e.Xattrs, data)
	}
	emit = func(name string, n *node, above []layers.Entry) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e := layers.Entry{Name: name, Kind: n.kind, Mode: n.mode, UID: n.uid, GID: n.gid, Xattrs: n.xattrs,
			Link: n.link, Size: n.size}
		data := ""
		if n.data != nil {
			e.Open, data = n.data.open, n.data.id()
		}
		if n.inLayer && name != "." {
			for _, dir := range above {
				if !written[dir.Name] {
					written[dir.Name] = true
					add(dir, "")
				}
			}
			written[name] = true
			add(e, data)
			if n.opaque {
				add(layers.Entry{Name: path.Join(name, ".wh..wh..opq"), Kind: layers.KindWhiteout, Mode: 0o644,
					Open: inline(nil).open}, "")
			}
		}
		if !n.isDir() || n.load != nil { // a directory that was not loaded has no changes
			return nil
		}
		if name != "." {
			above = append(above[:len(above):len(above)], e)
		}
		for _, child := range sorted(n.children) {
			if err := emit(path.Join(name, child), n.children[child], above); err != nil {
				return err
			}
		}
		return nil
	}
	err = emit(".", root, nil)
	return entries, ids.Digest().String(), err
}
