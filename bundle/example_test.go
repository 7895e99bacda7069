package bundle_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/operator-bindery/bindery/bundle"
)

// A bundle directory is read and converted to a blob of a catalog.
func ExampleRead() {
	b, err := bundle.Read(context.Background(), os.DirFS("../testdata/bundles/etcd/0.9.4"), bundle.ReadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	blob, err := b.Blob("quay.io/example/etcd:v0.9.4")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(blob.Package, blob.Name, b.CSV.Replaces)
	for _, p := range blob.Properties[:4] {
		fmt.Println(p.Type, string(p.Value))
	}
	for _, r := range blob.RelatedImages {
		fmt.Println(r.Image)
	}
	// Output:
	// etcd etcdoperator.v0.9.4 etcdoperator.v0.9.2
	// olm.gvk {"group":"etcd.database.coreos.com","kind":"EtcdBackup","version":"v1beta2"}
	// olm.gvk {"group":"etcd.database.coreos.com","kind":"EtcdCluster","version":"v1beta2"}
	// olm.gvk {"group":"etcd.database.coreos.com","kind":"EtcdRestore","version":"v1beta2"}
	// olm.package {"packageName":"etcd","version":"0.9.4"}
	// quay.io/coreos/etcd-operator@sha256:66a37fd61a06a43969854ee6d3e21087a98b93838e284a6086b13917f96b0d9b
	// quay.io/example/etcd:v0.9.4
}
