package sbom

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

// sha returns a digest of 64 times the same character.
func sha(c string) digest.Digest { return digest.Digest("sha256:" + strings.Repeat(c, 64)) }

// named is a reference with a digest.
func named(name string, d digest.Digest) Reference {
	return Reference{Text: name + "@" + d.String(), Name: name, Digest: d}
}

// tagged is a reference with a tag.
func tagged(name, tag string) Reference {
	return Reference{Text: name + ":" + tag, Name: name, Tag: tag}
}

// roled is a reference with the name of a related image.
func roled(role string, r Reference) Reference {
	r.Role = role
	return r
}

// smallCatalog is the catalog of the contract's examples.
func smallCatalog() *Inventory {
	bundle := named("registry.example.com/acme/tiny-bundle", sha("a"))
	return &Inventory{
		Image: Image{Name: "registry.example.com/acme/catalog", Digest: sha("0")},
		Packages: []Package{{Name: "tiny", DefaultChannel: "stable", Bundles: []Bundle{{Name: "tiny.v0.1.0",
			Version: "0.1.0", Image: bundle,
			Related: []Reference{bundle, roled("manager", named("registry.example.com/acme/tiny", sha("b")))}}}}},
	}
}

// server is a program with every kind of module.
func server(c string) *Program {
	return &Program{Path: "bin/opm", Digest: sha(c), Main: "github.com/operator-bindery/bindery", Version: "v0.1.0",
		Assumed: true, Go: "1.26.8", Modules: []Module{
			{Path: "github.com/Masterminds/semver", Version: "v1.5.0+incompatible", Sum: "h1:abc="},
			{Path: "github.com/fork/yaml", Version: "v1.0.1", Replaces: "github.com/ghodss/yaml"},
			{Path: "github.com/acme/local", Local: true},
		}}
}

// inventories are of every kind, with what hostile images would say.
func inventories() map[string]*Inventory {
	layers := []Layer{{Digest: sha("1"), MediaType: "application/vnd.oci.image.layer.v1.tar+gzip"}}
	odd := smallCatalog()
	odd.Packages = append(odd.Packages, Package{Name: "tiny\n\x1b[31m\u202e<&>\"\\", Bundles: []Bundle{
		{Name: "tiny.v0.1.0", Image: named("registry.example.com/acme/tiny-bundle", sha("a"))},
		{Name: "tiny.v0.1.0", Image: tagged("localhost:5000/Tiny", "v1")},
		{Name: "tiny_v2", Related: []Reference{tagged("quay.io/acme/x", "v1"), tagged("quay.io/acme/x", "v1"),
			{Text: "not a reference"}, {Text: "quay.io/acme/bare", Name: "quay.io/acme/bare"},
			roled("second", named("mirror.example.com/acme/tiny", sha("b")))}},
		{Name: "tiny v2"}, {Name: "\xff"},
	}})
	return map[string]*Inventory{
		"catalog":  smallCatalog(),
		"program":  OfProgram(server("7")),
		"nameless": {Image: Image{Digest: sha("0")}, Contents: Contents{Layers: layers}},
		"server": {Image: Image{Name: "localhost:5000/acme/catalog", Digest: sha("0")},
			Contents: Contents{Program: server("c"), Layers: append(layers, layers...)}},
		"bundle": {Image: Image{Name: "registry.example.com/acme/etcd", Digest: sha("0")},
			Operator: &Operator{Name: "etcdoperator.v0.9.4", Version: "0.9.4", Package: "etcd",
				Related: []Reference{named("quay.io/coreos/etcd-operator", sha("c")),
					tagged("quay.io/coreos/etcd", "v3.5")}}},
		"index": {Image: Image{Name: "registry.example.com/acme/catalog", Digest: sha("0")},
			Packages: smallCatalog().Packages,
			Instances: []Instance{
				{Image{"registry.example.com/acme/catalog", sha("5"), "arm64"},
					Contents{Program: server("d"), Layers: layers}},
				{Image{"registry.example.com/acme/catalog", sha("4"), "amd64"},
					Contents{Program: server("c"), Layers: layers}},
				{Image{"registry.example.com/acme/catalog", sha("4"), "amd64"}, Contents{}},
			}},
		"unreadable program": {Image: Image{Digest: sha("0")},
			Contents: Contents{Program: &Program{Path: "bin/opm", Digest: sha("e")}}},
		"odd": odd,
	}
}

// large is a catalog as large as the largest known ones: bundles with as many related images altogether.
func large(bundles, related int) *Inventory {
	inv := smallCatalog()
	inv.Packages = nil
	digestOf := func(kind string, n int) digest.Digest { return digest.FromString(fmt.Sprint(kind, n)) }
	for n := range bundles {
		if n%5 == 0 {
			inv.Packages = append(inv.Packages,
				Package{Name: fmt.Sprintf("operator-%04d", n), DefaultChannel: "stable"})
		}
		p := &inv.Packages[len(inv.Packages)-1]
		b := Bundle{Name: fmt.Sprintf("%s.v1.%d.0", p.Name, n), Version: fmt.Sprintf("1.%d.0", n),
			Image: named("registry.redhat.example/operators/"+p.Name+"-bundle", digestOf("bundle", n))}
		for r := n; r < related; r += bundles {
			b.Related = append(b.Related, roled("component-"+fmt.Sprint(r/bundles),
				named("registry.redhat.example/operators/"+p.Name+"-component-rhel9", digestOf("image", r))))
		}
		p.Bundles = append(p.Bundles, b)
	}
	return inv
}

// text returns a document.
func text(t *testing.T, f Format, inv *Inventory) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b, inv, Options{Version: "v0.1.0"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
