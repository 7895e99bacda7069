package inspect

import (
	"archive/tar"
	"fmt"
	"slices"
	"testing"
)

// The filtered view follows catalogd's filter and the order of entries. Its cost is linear in the entries, however many
// whiteouts a layer has.
func TestFilteredView(t *testing.T) {
	regular := func(names ...string) (out []entry) {
		for _, n := range names {
			out = append(out, entry{name: n, kind: tar.TypeReg})
		}
		return out
	}
	many := regular("configs/low")
	var markers []entry
	for i := range 50_000 {
		markers = append(markers, entry{name: fmt.Sprintf("configs/new/%d", i), kind: tar.TypeReg})
	}
	for range 100_000 {
		markers = append(markers, entry{name: "configs/.wh..wh..opq", kind: tar.TypeReg})
	}
	for name, c := range map[string]struct {
		layers [][]entry
		want   []string
		count  int
	}{
		"whiteout outside": {[][]entry{regular("configs/a", "other"), regular(".wh.configs", "configs/b")},
			[]string{"configs/a", "configs/b"}, 2},
		"whiteout inside": {[][]entry{regular("configs/a"), regular("configs/.wh.a", "configs/b")},
			[]string{"configs/b"}, 1},
		"whiteout of its own": {[][]entry{regular("configs/a", "configs/.wh.a")}, nil, 0},
		"opaque last": {[][]entry{regular("configs/a/x"), regular("configs/a/y", "configs/a/.wh..wh..opq")},
			[]string{"configs/a/y"}, 1},
		"opaque deep below": {[][]entry{regular("configs/a/x/1", "configs/b"),
			regular("configs/a/x/2", "configs/.wh..wh..opq")}, []string{"configs/a/x/2"}, 1},
		"prefix that is another": {[][]entry{regular("configs2/a", "configs")}, []string{"configs"}, 1},
		"many markers":           {[][]entry{many, markers}, nil, 50_000},
	} {
		var of []*facts
		for _, entries := range c.layers {
			of = append(of, &facts{entries: entries})
		}
		var got []string
		newFilteredView(of, "configs").walk("configs", func(name string, n *vnode) {
			if n.e.kind == tar.TypeReg {
				got = append(got, name)
			}
		})
		if len(got) != c.count || c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: got %d: %.300q, want %q", name, len(got), got, c.want)
		}
	}
}
