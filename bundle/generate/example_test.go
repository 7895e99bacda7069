package generate_test

import (
	"fmt"
	"log"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/bundle/generate"
)

// The annotations of a bundle.
func ExampleMetadata_Annotations() {
	m := generate.Metadata{MediaType: bundle.RegistryV1, Package: "etcd", Channels: "alpha,stable",
		DefaultChannel: "stable"}
	text, err := m.Annotations()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// annotations:
	//   operators.operatorframework.io.bundle.channel.default.v1: stable
	//   operators.operatorframework.io.bundle.channels.v1: alpha,stable
	//   operators.operatorframework.io.bundle.manifests.v1: manifests/
	//   operators.operatorframework.io.bundle.mediatype.v1: registry+v1
	//   operators.operatorframework.io.bundle.metadata.v1: metadata/
	//   operators.operatorframework.io.bundle.package.v1: etcd
}
