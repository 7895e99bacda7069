package declcfg_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// TestTreesOfFilesAreBounded: the cost of listing the files of a catalog is bounded.
func TestTreesOfFilesAreBounded(t *testing.T) {
	ignoring := fstest.MapFS{}
	for i := range 41 {
		ignoring[fmt.Sprintf("d%d/.indexignore", i)] = &fstest.MapFile{Data: []byte(strings.Repeat("x\n", 10_000))}
	}
	for name, c := range map[string]struct {
		fsys fstest.MapFS
		text string
	}{
		"101 directories in one another": {fstest.MapFS{strings.Repeat("d/", 101) + "x.yaml": {}},
			"more than 100 directories"},
		"100 directories in one another": {fstest.MapFS{strings.Repeat("d/", 100) + "x.yaml": {}}, ""},
		"patterns of all ignore files":   {ignoring, "more than 400000 patterns"},
	} {
		_, err := declcfg.Files(c.fsys)
		if c.text == "" && err != nil ||
			c.text != "" && (!errors.Is(err, declcfg.ErrLimit) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
