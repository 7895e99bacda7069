package property_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/operator-bindery/bindery/declcfg/property"
)

// The value of an olm.gvk property is an API that a bundle provides.
func ExampleGVK() {
	var api property.GVK
	if err := json.Unmarshal([]byte(`{"group":"etcd.database.coreos.com","kind":"EtcdCluster","version":"v1beta2"}`),
		&api); err != nil {
		log.Fatal(err)
	}
	fmt.Println(api.Kind, api.Group+"/"+api.Version)
	// Output: EtcdCluster etcd.database.coreos.com/v1beta2
}
