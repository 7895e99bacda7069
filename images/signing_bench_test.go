package images

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// BenchmarkSignedPush pushes a small image to a registry in memory, without signatures and with both forms of them.
func BenchmarkSignedPush(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "layout")
	testregistry.Image{Layers: []map[string]string{{"a": "b"}}}.WriteLayout(b, dir, "v1")
	from := opened(b, quick(b, ClientOptions{NoPolicy: true}), "oci:"+dir+":v1")
	key, err := signature.ParseKey(supplytest.Vectors(b)["keys"]["p256.pkcs8.pem"], nil, true)
	if err != nil {
		b.Fatal(err)
	}
	keys := func(context.Context) ([]signature.Signer, error) { return []signature.Signer{key}, nil }
	plain := true
	for _, signed := range []bool{false, true} {
		b.Run(fmt.Sprintf("signed=%v", signed), func(b *testing.B) {
			reg := testregistry.New(b)
			for n := 0; b.Loop(); n++ {
				o := CopyOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &plain, PlainHTTP: true}}}
				if signed {
					o.Attachments = []store.Attachment{signature.NewSigning(signature.SignOptions{Keys: keys})}
				}
				dest := transport.Destination{Transport: transport.Docker, Name: fmt.Sprintf("%s/acme/n%d:v1", reg.Host(), n)}
				if _, err := copyOf(b.Context(), of(b, from), []transport.Destination{dest}, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
