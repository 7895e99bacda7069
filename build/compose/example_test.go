package compose_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/operator-bindery/bindery/build/compose"
)

// A configuration file names the images of a composite catalog.
func ExampleRead() {
	const text = `name: community-operators
repo: quay.io/example/catalog
tag: latest
references:
- name: etcd-operator
  image: quay.io/example/etcd-index:v1
`
	config, err := compose.Read(strings.NewReader(text), "config.yaml")
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range config.References {
		fmt.Println(r.Name, "is in", r.Image)
	}
	// Output: etcd-operator is in quay.io/example/etcd-index:v1
}
