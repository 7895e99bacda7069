package resolve_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

func ExampleResolver_Resolve() {
	const catalog = `
{"schema": "olm.package", "name": "foo", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "foo", "name": "stable", "entries": [{"name": "foo.v1.0.0"},
	{"name": "foo.v1.1.0", "replaces": "foo.v1.0.0"}]}
{"schema": "olm.bundle", "package": "foo", "name": "foo.v1.0.0", "image": "example.com/foo:v1.0.0",
	"properties": [{"type": "olm.package", "value": {"packageName": "foo", "version": "1.0.0"}}]}
{"schema": "olm.bundle", "package": "foo", "name": "foo.v1.1.0", "image": "example.com/foo:v1.1.0",
	"properties": [{"type": "olm.package", "value": {"packageName": "foo", "version": "1.1.0"}}]}`
	ctx := context.Background()
	c, err := declcfg.Read(ctx, strings.NewReader(catalog), "catalog.json", declcfg.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	catalogs := []resolve.Catalog{{Name: "mine", Blobs: c.Blobs()}}
	r, err := resolve.NewResolver(ctx, catalogs, "foo", resolve.Gates{})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := r.Resolve(resolve.Request{Installed: &resolve.Installed{Name: "foo.v1.0.0", Version: "1.0.0"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Bundle, "of", answer.Catalog)
	// Output: foo.v1.1.0 of mine
}
