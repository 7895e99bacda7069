package build

import (
	"fmt"
	"slices"
	"testing"
)

// Small files share a note with all files below the same directory of the catalog; large ones have separate notes.
func TestGroupFiles(t *testing.T) {
	files := []sourceFile{
		{name: "a.yaml"}, {name: "b.yaml"}, {name: "foo/catalog.yaml"}, {name: "foo/large.yaml", size: aloneSize},
	}
	for i := range 1000 {
		files = append(files, sourceFile{name: fmt.Sprintf("foo/bundles/%d/x.yaml", i)})
	}
	got := groupFiles(files)
	want := [][]int{{0, 1}, {2}, {3}}
	for i := range 1000 {
		want[1] = append(want[1], 4+i)
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%d groups: %.300v", len(got), got)
	}
}
