package declcfg_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

func TestRepair(t *testing.T) {
	const text = `
schema: olm.package
name: a
---
schema: olm.channel
name: c
package: a
entries:
- name: a.v3
  replaces: a.v2
  skips: ["", a.v1, a.v3]
- name: a.v2
  replaces: a.v2-gone
- name: a.v2
  replaces: a.v2-gone
- name: a.v1
  replaces: a.v1
---
schema: olm.bundle
name: a.v1
package: a
image: docker://example.com/a:v1
properties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]
relatedImages:
- {name: x, image: "oci://example.com/x:v1"}
- {name: w, image: "https://example.com/y"}
- {name: z, image: " example.com/z "}
- {name: z, image: example.com/z}
- {name: none, image: ""}
---
schema: olm.bundle
name: a.v2
package: a
image: example.com/a:v2
properties: [{type: olm.package, value: {packageName: a, version: 2.0.0}}]
---
schema: olm.bundle
name: a.v3
package: a
image: example.com/a:v3
properties: [{type: olm.package, value: {packageName: a, version: 3.0.0}}]
`
	c, err := declcfg.Read(context.Background(), strings.NewReader(text), "c.yaml", declcfg.LoadOptions{})
	must(t, err)
	if c.Validate() == nil {
		t.Fatal("the catalog is valid before it is repaired")
	}
	related, entries := c.Bundles[0].RelatedImages, c.Channels[0].Entries
	var got strings.Builder
	for _, r := range c.Repair() {
		fmt.Fprintf(&got, "%s/%s/%s %s: %s => %s\n", r.Package, r.Channel, r.Bundle, r.Field, r.Before, r.After)
		if r.Reason == "" {
			t.Errorf("%+v has no reason", r)
		}
	}
	want := `a/c/a.v2 entries: a.v2 => 
a/c/a.v3 skips: ["" "a.v1" "a.v3"] => ["a.v1"]
a/c/a.v2 replaces: a.v2-gone => 
a/c/a.v1 replaces: a.v1 => 
a// defaultChannel:  => c
a//a.v1 image: docker://example.com/a:v1 => example.com/a:v1
a//a.v1 relatedImages: oci://example.com/x:v1 => example.com/x:v1
a//a.v1 relatedImages: https://example.com/y => 
a//a.v1 relatedImages:  example.com/z  => example.com/z
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if s := fmt.Sprint(c.Channels[0].Entries); s != "[{a.v3 a.v2 [a.v1] } {a.v2  [a.v2-gone] } {a.v1  [] }]" {
		t.Errorf("entries %s", s)
	}
	if s := fmt.Sprint(c.Bundles[0].RelatedImages); s != "[{x example.com/x:v1} {z example.com/z} {none }]" {
		t.Errorf("related images %s", s)
	}
	if related[0].Image != "oci://example.com/x:v1" || entries[1].Replaces != "a.v2-gone" || entries[0].Skips[0] != "" {
		t.Error("what others hold was changed")
	}
	if again := c.Repair(); len(again) > 0 {
		t.Errorf("repaired again: %+v", again)
	}
}
