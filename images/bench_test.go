package images

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// BenchmarkLatency reads an image of four small layers from a registry that takes 20 ms for each answer.
func BenchmarkLatency(b *testing.B) {
	reg := testregistry.New(b)
	var layers []rawLayer
	for n := range 4 {
		layers = append(layers,
			gzipLayer(b, tarOf(b, entry{name: fmt.Sprintf("configs/%d", n), body: "x"},
				entry{name: "configs/a/catalog.yaml", body: "x"})))
	}
	put(reg, "a/b", "v1", newFixture(b, layers...))
	reg.Interfere(func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(20 * time.Millisecond)
		return false
	})
	c := quick(b, ClientOptions{Options: registries.Options{Registry: insecure()}})
	for b.Loop() {
		if _, err := read(b.Context(), c, reg.Host()+"/a/b:v1"); err != nil {
			b.Fatal(err)
		}
	}
}
