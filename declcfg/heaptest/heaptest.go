// Package heaptest checks in tests that memory does not grow with a catalog.
package heaptest

import (
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// bundleSize is the length in bytes of the manifest of each bundle of [Catalog].
const bundleSize = 64 << 10

// Catalog returns a valid catalog of packages with one channel and four large bundles each, in one file or in a file
// per package.
func Catalog(packages int, oneFile bool) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := range packages {
		pkg := fmt.Sprintf("p%04d", i)
		var b strings.Builder
		fmt.Fprintf(&b,
			"---\nschema: olm.package\nname: %s\ndefaultChannel: c\n---\nschema: olm.channel\npackage: %s\nname: "+
				"c\nentries:\n", pkg, pkg)
		for v := range 4 {
			fmt.Fprintf(&b, "- name: %s.v%d\n", pkg, v)
			if v > 0 {
				fmt.Fprintf(&b, "  replaces: %s.v%d\n", pkg, v-1)
			}
		}
		for v := range 4 {
			fmt.Fprintf(&b,
				"---\nschema: olm.bundle\nimage: q.io/%s:v%d\nname: %s.v%d\npackage: %s\nproperties:\n- type: "+
					"olm.package\n  value:\n"+
					"    packageName: %s\n    version: %d.0.0\n- type: olm.csv.metadata\n  value:\n    displayName: "+
					"%s\n    description: %s\n",
				pkg, v, pkg, v, pkg, pkg, v, pkg, strings.Repeat("x", bundleSize))
		}
		name := pkg + "/catalog.yaml"
		if oneFile {
			name = "catalog.yaml"
		}
		if fsys[name] == nil {
			fsys[name] = &fstest.MapFile{}
		}
		fsys[name].Data = append(fsys[name].Data, b.String()...)
	}
	return fsys
}

// Bounded calls consume with catalogs of two sizes. It fails if the memory in use between the first and the last blob
// grows by more than a tenth of the difference in size.
func Bounded(t *testing.T, consume func(blobs iter.Seq2[declcfg.Blob, error]) error) {
	t.Helper()
	const small, large = 64, 256 // both larger than the read-ahead
	for _, oneFile := range []bool{false, true} {
		var held [2]int64
		for i, packages := range []int{small, large} {
			fsys := Catalog(packages, oneFile)
			before := heap()
			err := consume(func(yield func(declcfg.Blob, error) bool) {
				for b, err := range declcfg.Stream(t.Context(), fsys, declcfg.LoadOptions{Jobs: 2}, nil) {
					if held[i] == 0 {
						held[i] = heap() - before
					}
					if !yield(b, err) || err != nil {
						return
					}
				}
				held[i] = max(held[i], heap()-before)
			})
			if err != nil {
				t.Fatal(err)
			}
			runtime.KeepAlive(fsys)
		}
		if grown, most := held[1]-held[0], int64(large-small)*4*bundleSize/10; grown > most {
			t.Errorf("one file %v: it holds %d bytes of %d packages and %d of %d, %d more (at most %d)", oneFile,
				held[0], small, held[1], large, grown, most)
		}
	}
}

// heap returns the memory in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // frees what finalizers released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
