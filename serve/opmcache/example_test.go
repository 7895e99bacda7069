package opmcache_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// The files of one package in the format opm-json.
func ExampleJSONEntries() {
	catalog, err := declcfg.Load(context.Background(), os.DirFS("../../testdata/fbc/mini"), declcfg.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	entries, err := opmcache.JSONEntries(catalog.ByPackage()["kairos-operator"])
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.Name)
	}
	// Output:
	// tmp
	// tmp/cache/cache
	// tmp/cache
	// tmp/cache/cache/kairos-operator_candidate-v2_kairos-operator.v2.0.1.json
	// tmp/cache/cache/kairos-operator_candidate-v2_kairos-operator.v2.1.0.json
	// tmp/cache/cache/kairos-operator_candidate-v2_kairos-operator.v2.1.1.json
	// tmp/cache/cache/kairos-operator_candidate-v2_kairos-operator.v2.2.0.json
}
