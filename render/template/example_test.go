package template_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render/template"
)

// A semver template becomes a catalog: its channels and edges follow from the versions of the bundles.
func ExampleTemplate_Render() {
	const text = `schema: olm.semver
generateMajorChannels: true
stable:
  bundles:
  - image: quay.io/example/etcd:v1.0.0
  - image: quay.io/example/etcd:v1.1.0
`
	ctx := context.Background()
	t, err := template.ParseOptions{Name: "etcd.yaml"}.Parse(ctx, strings.NewReader(text))
	if err != nil {
		log.Fatal(err)
	}
	// A program renders the images with package render.
	render := func(_ context.Context, image string) (*declcfg.Catalog, error) {
		_, version, _ := strings.Cut(image, ":v")
		p, err := declcfg.NewProperty(declcfg.PropertyPackage,
			map[string]string{"packageName": "etcd", "version": version})
		b := declcfg.Bundle{Name: "etcd.v" + version, Package: "etcd", Image: image, Properties: []declcfg.Property{p}}
		return &declcfg.Catalog{Bundles: []declcfg.Bundle{b}}, err
	}
	catalog, err := t.Render(ctx, template.RenderOptions{Render: render})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range catalog.Channels {
		for _, e := range c.Entries {
			fmt.Printf("%s: %s replaces %q\n", c.Name, e.Name, e.Replaces)
		}
	}
	// Output:
	// stable-v1: etcd.v1.0.0 replaces ""
	// stable-v1: etcd.v1.1.0 replaces "etcd.v1.0.0"
}
