package catalogdir

import (
	"io/fs"
	"os"
	"slices"
	"strings"
)

// compareNames orders slash-separated names as directories are walked.
func compareNames(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

func sortNames(names []string) { slices.SortFunc(names, compareNames) }

// sameState reports whether a name stands for the same unchanged file in both.
func sameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Mode() == b.Mode() && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// within reports whether a name is dir or below it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}
