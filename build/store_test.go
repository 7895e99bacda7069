package build

import (
	"debug/elf"
	"testing"

	"github.com/operator-bindery/bindery/images/storetest"
)

// An assembled image is a place that is read: with one manifest, with an index, and with layers that are compressed when
// they are read.
func TestStore(t *testing.T) {
	one := index1(t, database("rows"), Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64)}})
	many := catalog(t, CatalogInput{FS: sampleFS()}, Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64),
		server(t, "arm64", elf.EM_AARCH64)}})
	for _, img := range []*Image{one, many} {
		storetest.TestReader(t, img.Store(), img.Top().Digest.String())
	}
}
