package configmap_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/operator-bindery/bindery/bundle/configmap"
)

// A bundle becomes the content of a ConfigMap.
func ExampleWrite() {
	bundle := os.DirFS("../../testdata/bundles/etcd/0.9.4")
	content, err := configmap.Write(context.Background(), bundle, configmap.Options{Gzip: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(content.BinaryData), "files of",
		content.Annotations["operators.operatorframework.io.bundle.package.v1"])
	// Output:
	// 4 files of etcd
}
