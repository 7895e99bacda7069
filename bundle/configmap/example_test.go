package configmap_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/operator-bindery/bindery/bundle/configmap"
)

// A bundle becomes the content of a ConfigMap, from which its objects can be read.
func ExampleWrite() {
	bundle := os.DirFS("../../testdata/bundles/etcd/0.9.4")
	content, err := configmap.Write(context.Background(), bundle, configmap.Options{Gzip: true})
	if err != nil {
		log.Fatal(err)
	}
	read, err := configmap.Read(content)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(content.BinaryData), "files:", read.Package, read.CSV.Name)
	// Output:
	// 4 files: etcd etcdoperator.v0.9.4
}
