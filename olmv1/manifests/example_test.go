package manifests_test

import (
	"fmt"
	"os"

	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// What OLM v1 applies for a bundle, and in which order.
func ExamplePhases() {
	b, err := manifests.Read(os.DirFS("../../testdata/bundles/silicom-sts-operator/0.0.1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := b.Manifests(manifests.Settings{InstallNamespace: "silicom", Certs: manifests.CertManager})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, phase := range manifests.Phases(objects) {
		fmt.Println(phase.Name, len(phase.Objects))
	}
	// Output:
	// identity 3
	// crds 3
	// roles 6
	// bindings 5
	// infrastructure 1
	// deploy 1
}

// Every reason why OLM v1 refuses a bundle, not only the first.
func ExampleBundle_Problems() {
	b, err := manifests.Read(os.DirFS("../../testdata/bundles/etcd/0.9.4"))
	if err != nil {
		fmt.Println(manifests.Unreadable(err))
		return
	}
	for _, p := range b.Problems(manifests.Settings{InstallNamespace: "etcd", Certs: manifests.CertManager}) {
		fmt.Println(p.ID, p.Object)
	}
	// Output:
	// install-mode ClusterServiceVersion etcdoperator.v0.9.4
}
