package build

import (
	"path"
	"strings"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
)

// opmCacheDir is the directory of the cache in images that opm serves.
const opmCacheDir = "tmp/cache"

// places assigns unique names below configs.
type places struct {
	files map[string]bool
	dirs  map[string]bool
}

func newPlaces() *places {
	return &places{files: map[string]bool{}, dirs: map[string]bool{}}
}

// nativeName returns the name that a file already has in the directory of its package.
func nativeName(pkg, file string) (string, bool) {
	if pkg != "" && strings.HasPrefix(file, pkg+"/") {
		return path.Join(cataloglayer.ConfigsDir, file), true
	}
	return "", false
}

// take assigns a free name to a file of the package: its native name, else its path below the directory of the package,
// with additional directories while that is in use.
func (p *places) take(pkg, file string) string {
	name, ok := nativeName(pkg, file)
	if !ok {
		name = path.Join(cataloglayer.ConfigsDir, pkg, file)
	}
	for between := path.Join(cataloglayer.ConfigsDir, pkg); !p.free(name); {
		between = path.Join(between, "files")
		name = path.Join(between, file)
	}
	p.files[name] = true
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		p.dirs[dir] = true
	}
	return name
}

// free reports whether a file can have the name and its parents can be directories.
func (p *places) free(name string) bool {
	if p.files[name] || p.dirs[name] {
		return false
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if p.files[dir] {
			return false
		}
	}
	return true
}
