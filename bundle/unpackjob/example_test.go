package unpackjob_test

import (
	"fmt"
	"log"

	"github.com/operator-bindery/bindery/bundle/unpackjob"
)

// The objects that unpack a bundle image on a cluster.
func ExampleNew() {
	objects, err := unpackjob.New(unpackjob.Options{Image: "quay.io/example/etcd:v0.9.4", Namespace: "olm"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(objects.Job.Namespace, objects.Job.Name == objects.ConfigMap.Name, len(objects.Job.Name))
	// Output: olm true 63
}
