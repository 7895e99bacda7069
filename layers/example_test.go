package layers_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/operator-bindery/bindery/layers"
)

// The digest of a layer depends on its entries and its compression only.
func ExampleLayer_Write() {
	layer := layers.Layer{Name: "files", Entries: []layers.Entry{layers.Bytes("etc/motd", 0o644, []byte("hello\n"))}}
	blob, err := layer.Write(context.Background(), io.Discard, layers.Options{Compression: layers.Gzip})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(blob.DiffID)
	fmt.Println(blob.Uncompressed, "bytes uncompressed")
	// Output:
	// sha256:59c474078901ef5100df9f01140f17613c2c59fd970be52574e94ad1dbcb99a5
	// 2560 bytes uncompressed
}
