package diff_test

import (
	"log"
	"os"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/diff"
)

// Two catalogs are compared, and the differences written for people.
func ExampleCompare() {
	before := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "etcd", DefaultChannel: "alpha"}, {Name: "kiali"}}}
	after := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "etcd", DefaultChannel: "stable"}}}
	report, err := diff.Compare(before.Blobs(), after.Blobs(), diff.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := report.WriteText(os.Stdout, diff.TextOptions{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ~ package etcd
	//   ~ default channel alpha -> stable
	// - package kiali
}
