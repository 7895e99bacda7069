package clitest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// ExtraBlobs are blobs of the package foo with what no program of OLM v0 knows: schemas, fields, and numbers that are
// not written as Go writes them.
var ExtraBlobs = []string{
	`{"a":[1,2.50,1.0e+30],"name":"x","package":"foo","schema":"example.com.thing"}`,
	`{"lifecycle":{"phases":[{"name":"ga","until":"2030-01-01"}]},"package":"foo",` +
		`"schema":"io.openshift.operators.lifecycles.v1alpha1","version":12345678901234567890}`,
	`{"entries":[{"name":"foo-v1.0.0-2"}],"lane":{"fast":false},"name":"stable","package":"foo","schema":"olm.channel"}`,
	`{"image":"registry.example.com/foo@sha256:` + fmt.Sprintf("%064d",
		3) + `","name":"foo-v1.0.0-2","package":"foo",` +
		`"properties":[{"type":"olm.package","value":{"packageName":"foo","release":"2","version":"1.0.0"}},` +
		`{"type":"example.com/p","value":{"big":1.0e+30}}],"schema":"olm.bundle","tier":[0]}`,
	`{"defaultChannel":"stable","name":"foo","releases":[{"version":"1.0.0"}],"schema":"olm.package"}`,
}

// GlobalBlob is a blob of no package.
const GlobalBlob = `{"name":"everywhere","schema":"example.com.global","z":1}`

// CatalogdDir returns a directory with the catalogs "catalog", of the packages foo, with everything unknown, and bar,
// "many", of 120 packages, and "one"; two bases with catalogs of their own; and images of the catalogs.
func CatalogdDir(t *testing.T) (dir string, registry *testregistry.Registry) {
	t.Helper()
	dir, registry = t.TempDir(), testregistry.New(t)
	WriteFile(t, filepath.Join(dir, "catalog", "foo", "catalog.json"), strings.Join(ExtraBlobs, "\n"))
	WriteFile(t, filepath.Join(dir, "catalog", "bar", "catalog.json"), PackageText("bar"))
	WriteFile(t, filepath.Join(dir, "catalog", "global.json"), GlobalBlob)
	WriteFile(t, filepath.Join(dir, "one", "one", "catalog.json"), PackageText("one"))
	for n := range 120 {
		name := fmt.Sprintf("pkg-%03d", n)
		WriteFile(t, filepath.Join(dir, "many", name, "catalog.json"), PackageText(name))
	}
	for name, at := range map[string]string{"base": "configs", "nested": "configs/sub"} {
		base := OpmFor("amd64")
		base.Labels = map[string]string{TestConfigsLabel: "/" + at}
		base.Layers = append(base.Layers, map[string]string{at + "/old/catalog.json": PackageText("old"),
			at + "/foo/index.json": PackageText("foo"), "cache/old.cache": "x"})
		registry.AddImage(t, "acme/"+name, "v1", base)
	}
	var four []testregistry.Image
	for _, arch := range []string{"amd64", "arm64", "ppc64le", "s390x"} {
		of := OpmFor(arch)
		of.Labels = map[string]string{TestConfigsLabel: "/configs"}
		of.Layers = append(of.Layers, map[string]string{"configs/old/catalog.json": PackageText("old")})
		four = append(four, of)
	}
	registry.AddIndex(t, "acme/four", "v1", nil, four)
	for _, name := range []string{"catalog", "one"} {
		Done(t, dir, "bindery", "build", "catalog", name, "-t", registry.Host()+"/acme/"+name+":v1", "--push",
			"--server", "none", "--use-http")
	}
	WriteFile(t, filepath.Join(dir, "compose.yaml"),
		fmt.Sprintf("name: all\nrepo: %[1]s/acme/all\ntag: v1\nreferences:\n"+
			"- name: one\n  image: %[1]s/acme/one:v1\n- name: catalog\n  image: %[1]s/acme/catalog:v1\n",
			registry.Host()))
	CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "small.db"))
	Done(t, dir, "bindery", "migrate", "small.db", "migrated")
	return dir, registry
}
