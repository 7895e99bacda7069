package inventory

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/supply/sbom"
)

// catalogText is the catalog of a package with one bundle.
func catalogText(name string) string {
	return `{"schema":"olm.package","name":"` + name + `","defaultChannel":"stable"}
{"schema":"olm.channel","package":"` + name + `","name":"stable","entries":[{"name":"` + name + `.v1.0.0"}]}
{"schema":"olm.bundle","package":"` + name + `","name":"` + name + `.v1.0.0","image":"quay.io/acme/` + name +
		`-bundle@sha256:` + strings.Repeat("1", 64) + `","properties":[{"type":"olm.package","value":{"packageName":"` +
		name + `","version":"1.0.0"}}],"relatedImages":[{"name":"manager","image":"quay.io/acme/` + name + `:v1"},` +
		`{"name":"","image":"etcd"}]}
`
}

var (
	catalogLabels  = map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}
	databaseLabels = map[string]string{"operators.operatorframework.io.index.database.v1": "/database/index.db"}
	serverLayer    = map[string]string{"io.github.operator-bindery.layer.kind": "server"}
	packagesLayer  = map[string]string{"io.github.operator-bindery.layer.kind": "packages"}
)

// catalogImage is the image of one platform: a server layer below a layer of packages.
func catalogImage(arch string, server map[string]string) testregistry.Image {
	return testregistry.Image{Platform: v1.Platform{OS: "linux", Architecture: arch}, Labels: catalogLabels,
		Layers:           []map[string]string{server, {"configs/tiny/catalog.json": catalogText("tiny")}},
		LayerAnnotations: []map[string]string{serverLayer, packagesLayer}}
}

// examine examines an image of a registry.
func examine(t *testing.T, r *testregistry.Registry, name string) (*Inventory, *images.Survey, error) {
	t.Helper()
	skip := true
	client, err := images.NewClient(
		images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	survey, err := imagetest.Survey(t, client, r.Host()+"/"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = survey.Close() })
	inv, err := Examine(context.Background(), survey, Options{Release: "v0.1.0", Temp: t.TempDir()})
	return inv, survey, err
}

// of returns the inventory of a subject.
func of(t *testing.T, inv *Inventory, d digest.Digest) *sbom.Inventory {
	t.Helper()
	out, ok := inv.Of(d, inv.Repository)
	if !ok {
		t.Fatalf("no inventory of %s", d)
	}
	return out
}

func packageNames(inv *sbom.Inventory) (names []string) {
	for _, p := range inv.Packages {
		names = append(names, p.Name)
	}
	return names
}

func TestCatalog(t *testing.T) {
	r := testregistry.New(t)
	d := r.AddImage(t, "acme/catalog", "v1", catalogImage("amd64", map[string]string{"bin/opm": "server"}))
	inv, survey, err := examine(t, r, "acme/catalog:v1")
	if err != nil {
		t.Fatal(err)
	}
	got := of(t, inv, d)
	if inv.Repository != r.Host()+"/acme/catalog" || survey.Digest != d || !slices.Equal(inv.Subjects(),
		[]digest.Digest{d}) {
		t.Errorf("%s %s %v", inv.Repository, survey.Digest, inv.Subjects())
	}
	if len(got.Packages) != 1 || got.Packages[0].DefaultChannel != "stable" || len(got.Packages[0].Bundles) != 1 ||
		len(got.Contents.Layers) != 0 {
		t.Fatalf("%+v", got)
	}
	b := got.Packages[0].Bundles[0]
	if b.Version != "1.0.0" || b.Image.Digest != digest.Digest("sha256:"+strings.Repeat("1", 64)) ||
		b.Image.Name != "quay.io/acme/tiny-bundle" || len(b.Related) != 2 {
		t.Errorf("%+v", b)
	}
	if r := b.Related[0]; r.Name != "quay.io/acme/tiny" || r.Tag != "v1" || r.Digest != "" || r.Role != "manager" {
		t.Errorf("%+v", r)
	}
	if r := b.Related[1]; r.Name != "docker.io/library/etcd" || r.Tag != "" || r.Text != "etcd" {
		t.Errorf("%+v", r)
	}
	if p := got.Contents.Program; p == nil || p.Digest != digest.FromString("server") || p.Main != "" {
		t.Errorf("%+v", p)
	}
}

// The images of several platforms that differ in their servers alone have one catalog, which is read once. A
// layer that is declared to be a server but has catalog files makes a difference, and the catalogs are read apart.
func TestPlatforms(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second map[string]string
		wantFirst     []string
		wantSecond    []string
		wantAll       []string
		reads         int // of the layer of packages
	}{
		{"servers", map[string]string{"bin/opm": "one"}, map[string]string{"bin/opm": "two"}, []string{"tiny"},
			[]string{"tiny"}, []string{"tiny"}, 1},
		{"a package in the second server layer", map[string]string{"bin/opm": "one"},
			map[string]string{"bin/opm": "two", "configs/evil/catalog.json": catalogText("evil")}, []string{"tiny"},
			[]string{"evil", "tiny"}, []string{"evil", "tiny"}, 2},
		{"a package in the first server layer",
			map[string]string{"bin/opm": "one", "configs/evil/catalog.json": catalogText("evil")},
			map[string]string{"bin/opm": "two"}, []string{"evil", "tiny"}, []string{"tiny"}, []string{"evil", "tiny"},
			2},
		{"a whiteout in the second server layer", map[string]string{"bin/opm": "one"},
			map[string]string{"bin/opm": "two", "configs/.wh.tiny": ""}, []string{"tiny"}, []string{"tiny"},
			[]string{"tiny"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := testregistry.New(t)
			first, second := catalogImage("amd64", c.first), catalogImage("arm64", c.second)
			top := r.AddIndex(t, "acme/catalog", "v1", nil, []testregistry.Image{first, second})
			inv, survey, err := examine(t, r, "acme/catalog:v1")
			if err != nil {
				t.Fatal(err)
			}
			if len(inv.Subjects()) != 3 || inv.Subjects()[0] != top {
				t.Fatalf("%v", inv.Subjects())
			}
			one, two := of(t, inv, survey.Images[0].Digest), of(t, inv, survey.Images[1].Digest)
			all := of(t, inv, top)
			for n, want := range [][]string{c.wantFirst, c.wantSecond, c.wantAll} {
				if got := packageNames([]*sbom.Inventory{one, two, all}[n]); !slices.Equal(got, want) {
					t.Errorf("%d: got %v, want %v", n, got, want)
				}
			}
			if one.Contents.Program.Digest != digest.FromString("one") ||
				two.Contents.Program.Digest != digest.FromString("two") || len(all.Instances) != 2 ||
				all.Instances[1].Contents.Program.Digest != digest.FromString("two") ||
				all.Instances[1].Architecture != "arm64" {
				t.Errorf("%+v %+v", one.Contents.Program, two.Contents.Program)
			}
			packages := survey.Images[0].Layers[1].Digest
			if got := r.Count("GET /v2/acme/catalog/blobs/" + packages.String()); got != c.reads {
				t.Errorf("the layer of packages was read %d times, not %d", got, c.reads)
			}
		})
	}
}

// A path of the server through a link leaves the server undescribed, and the rest described.
func TestServerBehindALink(t *testing.T) {
	r := testregistry.New(t)
	i := catalogImage("amd64", map[string]string{"usr/bin/opm": "server"})
	i.Links = map[string]string{"bin": "usr/bin"}
	i.LayerAnnotations = nil
	d := r.AddImage(t, "acme/catalog", "v1", i)
	inv, _, err := examine(t, r, "acme/catalog:v1")
	if err != nil {
		t.Fatal(err)
	}
	got := of(t, inv, d)
	if got.Contents.Program != nil || len(got.Contents.Layers) != 3 || len(got.Packages) != 1 {
		t.Errorf("%+v", got)
	}
}

// Of an image that is no catalog and no bundle the layers are listed, and none is read.
func TestOtherImages(t *testing.T) {
	r := testregistry.New(t)
	d := r.AddImage(t, "acme/tool", "v1", testregistry.Image{Labels: map[string]string{"a": "b"},
		Layers: []map[string]string{{"bin/tool": "x"}, {"etc/tool": "y"}}})
	inv, survey, err := examine(t, r, "acme/tool:v1")
	if err != nil {
		t.Fatal(err)
	}
	got := of(t, inv, d)
	if len(got.Contents.Layers) != 2 || got.Contents.Layers[0].Digest != survey.Images[0].Layers[0].Digest ||
		len(got.Packages) != 0 || got.Operator != nil {
		t.Errorf("%+v", got)
	}
	for _, l := range survey.Images[0].Layers {
		if r.Count("GET /v2/acme/tool/blobs/"+l.Digest.String()) != 0 {
			t.Errorf("layer %s was read", l.Digest)
		}
	}
}

func TestBundleImage(t *testing.T) {
	r := testregistry.New(t)
	labels := map[string]string{"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":  "metadata/",
		"operators.operatorframework.io.bundle.package.v1":   "etcd",
		"operators.operatorframework.io.bundle.channels.v1":  "alpha"}
	d := r.AddImage(t, "acme/etcd", "v1", testregistry.Image{Labels: labels,
		Layers: []map[string]string{testregistry.Files(t, "../../testdata/bundles/etcd/0.9.4", "")}})
	inv, _, err := examine(t, r, "acme/etcd:v1")
	if err != nil {
		t.Fatal(err)
	}
	o := of(t, inv, d).Operator
	if o == nil || o.Name != "etcdoperator.v0.9.4" || o.Version != "0.9.4" || o.Package != "etcd" ||
		len(o.Related) == 0 ||
		o.Related[0].Name != "quay.io/coreos/etcd-operator" || o.Related[0].Digest == "" {
		t.Errorf("%+v", o)
	}
}

func TestDatabaseImage(t *testing.T) {
	db, err := os.ReadFile("../../testdata/db/small.db")
	if err != nil {
		t.Fatal(err)
	}
	r := testregistry.New(t)
	d := r.AddImage(t, "acme/index", "v1", testregistry.Image{Labels: databaseLabels,
		Layers: []map[string]string{{"bin/opm": "server"}, {"database/index.db": string(db)}}})
	inv, _, err := examine(t, r, "acme/index:v1")
	if err != nil {
		t.Fatal(err)
	}
	got := of(t, inv, d)
	if !slices.Equal(packageNames(got), []string{"etcd", "silicom-sts-operator"}) ||
		len(got.Packages[0].Bundles) == 0 ||
		got.Contents.Program == nil {
		t.Errorf("%+v", got)
	}
}

// What an image is said to contain and does not, or what cannot be read, is an error: a document without it would be
// wrong.
func TestImagesThatCannotBeRead(t *testing.T) {
	for name, i := range map[string]testregistry.Image{
		"no catalog": {Labels: catalogLabels, Layers: []map[string]string{{"a": "b"}}},
		"invalid catalog": {Labels: catalogLabels,
			Layers: []map[string]string{{"configs/catalog.json": `{"schema":"olm.package"`}}},
		"a place outside": {Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/../configs"},
			Layers: []map[string]string{{"a": "b"}}},
		"no bundle": {Labels: map[string]string{"operators.operatorframework.io.bundle.package.v1": "etcd"},
			Layers: []map[string]string{{"a": "b"}}},
		"no database": {Labels: databaseLabels, Layers: []map[string]string{{"a": "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := testregistry.New(t)
			r.AddImage(t, "acme/x", "v1", i)
			if inv, _, err := examine(t, r, "acme/x:v1"); err == nil {
				t.Errorf("%+v", inv)
			}
		})
	}
	r := testregistry.New(t)
	r.AddImage(t, "acme/x", "v1", catalogImage("amd64", map[string]string{"bin/opm": strings.Repeat("x", 1000)}))
	_, survey, err := examine(t, r, "acme/x:v1")
	if err != nil {
		t.Fatal(err)
	}
	limits := images.Limits{File: 999}
	if _, err := Examine(context.Background(), survey, Options{Limits: limits}); !errors.Is(err, images.ErrLimit) {
		t.Errorf("a file above the limit: %v", err)
	}
}
