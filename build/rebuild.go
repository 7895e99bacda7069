package build

import (
	"errors"

	"github.com/operator-bindery/bindery/layers"
)

// PackagesLayer returns the layer that [Catalog] builds from the files of packages and their caches. The names of the
// files are those in the image, below configs. It serves to verify a layer of an image. Only the options about caches
// are used.
func PackagesLayer(files map[string][]layers.Entry, o Options) (layers.Layer, error) {
	contents, err := sortedContents(files)
	if err != nil {
		return layers.Layer{}, err
	}
	if len(contents) == 0 {
		return emptyCatalog(), nil
	}
	return packagesPart(&o, contents).layer, nil
}

// emptyCatalog returns the layer of a catalog without packages: the directory must exist, because the server and other
// clients look for it.
func emptyCatalog() layers.Layer {
	return layers.Layer{Name: "empty catalog", Entries: []layers.Entry{layers.Dir(configsDir, 0o755)}}
}

// ServerLayer returns the layer of a server, to verify one of an image.
func ServerLayer(s Server) (layers.Layer, error) {
	if s.program.Open == nil {
		return layers.Layer{}, errors.New("there is no server")
	}
	return s.layer(), nil
}
