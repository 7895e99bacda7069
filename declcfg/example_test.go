package declcfg_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// A catalog directory is loaded and validated, and its graph has the head of each default channel.
func ExampleLoad() {
	catalog, err := declcfg.Load(context.Background(), os.DirFS("../testdata/fbc/mini"), declcfg.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	graph, err := catalog.ValidGraph()
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range graph.Packages[:2] {
		head, err := p.Default().Head()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.Name, p.DefaultChannel, head.Name)
	}
	// Output:
	// ecr-secret-operator v0.4 ecr-secret-operator.v0.4.1
	// kairos-operator candidate-v2 kairos-operator.v2.2.0
}

// An invalid catalog is an error with every broken rule and its place.
func ExampleCatalog_Validate() {
	const text = `schema: olm.package
name: etcd
defaultChannel: stable
---
schema: olm.channel
package: etcd
name: stable
entries:
- name: etcd.v1.0.0
`
	catalog, err := declcfg.Read(context.Background(), strings.NewReader(text), "catalog.yaml", declcfg.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(catalog.Validate())
	// Output:
	// no olm.bundle blobs found in package "etcd" for olm.channel entries [etcd.v1.0.0] [catalog.yaml:5]
}

// Blobs are written as opm writes them.
func ExampleCatalog_Write() {
	catalog := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "etcd", DefaultChannel: "stable"}}}
	if err := catalog.Write(os.Stdout, declcfg.FormatYAML); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ---
	// defaultChannel: stable
	// name: etcd
	// schema: olm.package
}
