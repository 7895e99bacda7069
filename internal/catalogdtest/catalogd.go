// Package catalogdtest unpacks images for tests by the rules of OLM v1's catalogd, which differ from those of container
// engines: it first drops entries outside the catalog's directory and then applies the remaining whiteouts.
package catalogdtest

import (
	"archive/tar"
	"errors"
	"io"
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images"
)

// Files returns the files that catalogd unpacks from an image, with their content, by name relative to the image's
// root.
//
// It follows containerd's archive.Apply with catalogd's filter: layer by layer and entry by entry, an entry is used if
// its name is the directory named by the label or below it; a whiteout removes what exists when it is met, even from
// the same layer; an opaque marker removes what lower layers put into the directory.
func Files(t testing.TB, img *images.Image) map[string]string {
	t.Helper()
	label := img.Config.Config.Labels["operators.operatorframework.io.index.configs.v1"]
	if label == "" {
		t.Fatal("the image has no label of a catalog")
	}
	u := unpacked{root: strings.TrimPrefix(path.Clean("/"+label), "/"), files: map[string]string{}}
	reader := images.NewLayerReader(images.Limits{})
	for n := range img.Layers {
		u.written = map[string]bool{}
		if _, err := reader.Read(t.Context(), img, n, u.take); err != nil {
			t.Fatal(err)
		}
	}
	return u.files
}

// unpacked is a directory that layers are unpacked to.
type unpacked struct {
	root    string
	files   map[string]string
	written map[string]bool // by the layer being unpacked
}

func (u *unpacked) take(name string, h *tar.Header, content io.Reader) error {
	if u.root != "" && name != u.root && !strings.HasPrefix(name, u.root+"/") {
		return nil
	}
	dir, base := path.Split(name)
	switch hidden, whiteout := strings.CutPrefix(base, ".wh."); {
	case base == ".wh..wh..opq":
		u.remove(dir, func(file string) bool { return !u.written[file] })
		return nil
	case whiteout:
		u.remove(dir+hidden, func(string) bool { return true })
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		delete(u.files, name)
		return nil
	case tar.TypeReg:
		u.remove(name, func(string) bool { return true })
		text, err := io.ReadAll(content)
		u.files[name], u.written[name] = string(text), true
		return err
	}
	return errors.New(name + ": neither a file nor a directory")
}

// remove removes a file, or the files below a directory, for which condition is true.
func (u *unpacked) remove(name string, condition func(file string) bool) {
	dir := strings.TrimSuffix(name, "/")
	maps.DeleteFunc(u.files, func(file, _ string) bool {
		return (file == dir || strings.HasPrefix(file, dir+"/")) && condition(file)
	})
}
