package build

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
)

// File is a file of a catalog directory and the packages that have blobs in it, sorted. The empty name stands for blobs
// of no package.
type File struct {
	Path     string
	Packages []string
	// Digest is the sha256 of the file, if it is known. The build fails if the file has another digest.
	Digest digest.Digest
}

// FilesOf returns the files of a loaded catalog and their packages, from its positions, sorted by path. A catalog that
// was loaded for validation need not be read again for the build.
func FilesOf(c *declcfg.Catalog) ([]File, error) {
	packages := map[string]map[string]bool{}
	var err error
	for b := range c.All() {
		file := b.Position().File
		if file == "" {
			err = errors.Join(err, fmt.Errorf("%s %q: unknown file of origin", b.BlobSchema(), b.BlobName()))
			continue
		}
		if packages[file] == nil {
			packages[file] = map[string]bool{}
		}
		packages[file][packageOf(b)] = true
	}
	if err != nil {
		return nil, err
	}
	files := make([]File, 0, len(packages))
	for path, in := range packages {
		files = append(files, File{Path: path, Packages: slices.Sorted(maps.Keys(in))})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// packageOf returns the package that a blob belongs to, also for an olm.package blob that was not decoded.
func packageOf(b declcfg.Blob) string {
	if b.BlobSchema() == declcfg.SchemaPackage {
		return b.BlobName()
	}
	return b.BlobPackage()
}

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

// assignName assigns a free name to a file of the package: its native name, else its path below the directory of the
// package, with additional directories while that is in use.
func (p *places) assignName(pkg, file string) string {
	name, ok := nativeName(pkg, file)
	if !ok {
		name = path.Join(cataloglayer.ConfigsDir, pkg, file)
	}
	for between := path.Join(cataloglayer.ConfigsDir, pkg); !p.isFree(name); {
		between = path.Join(between, "files")
		name = path.Join(between, file)
	}
	p.files[name] = true
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		p.dirs[dir] = true
	}
	return name
}

// isFree reports whether a file can have the name and its parents can be directories.
func (p *places) isFree(name string) bool {
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
