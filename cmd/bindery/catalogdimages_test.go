package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/testing/catalogdtest"
	"github.com/operator-bindery/bindery/internal/testing/imagetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// extraBlobs are blobs of the package foo with what no program of OLM v0 knows: schemas, fields, and numbers that are
// not written as Go writes them.
var extraBlobs = []string{
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

// globalBlob is a blob of no package.
const globalBlob = `{"name":"everywhere","schema":"example.com.global","z":1}`

// catalogdDir returns a directory with the catalogs "catalog", of the packages foo, with everything unknown, and bar,
// "many", of 120 packages, and "one"; two bases with catalogs of their own; and images of the catalogs.
func catalogdDir(t *testing.T) (dir string, registry *testregistry.Registry) {
	t.Helper()
	dir, registry = t.TempDir(), testregistry.New(t)
	writeFile(t, filepath.Join(dir, "catalog", "foo", "catalog.json"), strings.Join(extraBlobs, "\n"))
	writeFile(t, filepath.Join(dir, "catalog", "bar", "catalog.json"), packageText("bar"))
	writeFile(t, filepath.Join(dir, "catalog", "global.json"), globalBlob)
	writeFile(t, filepath.Join(dir, "one", "one", "catalog.json"), packageText("one"))
	for n := range 120 {
		name := fmt.Sprintf("pkg-%03d", n)
		writeFile(t, filepath.Join(dir, "many", name, "catalog.json"), packageText(name))
	}
	for name, at := range map[string]string{"base": "configs", "nested": "configs/sub"} {
		base := opmFor("amd64")
		base.Labels = map[string]string{testConfigsLabel: "/" + at}
		base.Layers = append(base.Layers, map[string]string{at + "/old/catalog.json": packageText("old"),
			at + "/foo/index.json": packageText("foo"), "cache/old.cache": "x"})
		registry.AddImage(t, "acme/"+name, "v1", base)
	}
	var four []testregistry.Image
	for _, arch := range []string{"amd64", "arm64", "ppc64le", "s390x"} {
		of := opmFor(arch)
		of.Labels = map[string]string{testConfigsLabel: "/configs"}
		of.Layers = append(of.Layers, map[string]string{"configs/old/catalog.json": packageText("old")})
		four = append(four, of)
	}
	registry.AddIndex(t, "acme/four", "v1", nil, four)
	for _, name := range []string{"catalog", "one"} {
		done(t, dir, "bindery", "build", "catalog", name, "-t", registry.Host()+"/acme/"+name+":v1", "--push",
			"--server", "none", "--use-http")
	}
	writeFile(t, filepath.Join(dir, "compose.yaml"),
		fmt.Sprintf("name: all\nrepo: %[1]s/acme/all\ntag: v1\nreferences:\n"+
			"- name: one\n  image: %[1]s/acme/one:v1\n- name: catalog\n  image: %[1]s/acme/catalog:v1\n",
			registry.Host()))
	copyFile(t, "../../testdata/db/small.db", filepath.Join(dir, "small.db"))
	done(t, dir, "bindery", "migrate", "small.db", "migrated")
	return dir, registry
}

// eachImage opens every image of a layout's index, also those of other platforms and of other compressions.
func eachImage(t *testing.T, layout string, open func(*images.Image)) {
	t.Helper()
	file := filepath.Join(layout, "index.json")
	var leaves []v1.Descriptor
	var collect func(text string)
	collect = func(text string) {
		var index v1.Index
		if err := json.Unmarshal([]byte(text), &index); err != nil {
			t.Fatal(err)
		}
		for _, d := range index.Manifests {
			if strings.Contains(d.MediaType, "index") || strings.Contains(d.MediaType, "list") {
				collect(readFile(t, filepath.Join(layout, "blobs", "sha256", d.Digest.Encoded())))
				continue
			}
			leaves = append(leaves, d)
		}
	}
	whole := readFile(t, file)
	collect(whole)
	for _, d := range leaves {
		d.Annotations, d.Platform = map[string]string{v1.AnnotationRefName: "leaf"}, nil
		text, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []v1.Descriptor{d}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		img, err := imagetest.Client(t).Image(t.Context(), "oci:"+layout+":leaf", v1.Platform{})
		if err != nil {
			t.Fatal(err)
		}
		open(img)
		img.Close()
	}
	if err := os.WriteFile(file, []byte(whole), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sortedLines returns the lines of a text in lexical order.
func sortedLines(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Every image of a catalog, of every command and option, gives catalogd exactly the catalog.
func TestCatalogdReadsEveryImage(t *testing.T) {
	dir, registry := catalogdDir(t)
	host := registry.Host()
	base, nested, from := host+"/acme/base:v1", host+"/acme/nested:v1", host+"/acme/catalog:v1"
	want := func(dirs ...string) string {
		text := ""
		for _, name := range dirs {
			text += catalogdtest.Directory(t, filepath.Join(dir, name))
		}
		return sortedLines(text)
	}
	edited := func(args ...string) func() string {
		return func() string {
			at := filepath.Join(t.TempDir(), "edited")
			if err := os.CopyFS(at, os.DirFS(filepath.Join(dir, "catalog"))); err != nil {
				t.Fatal(err)
			}
			done(t, dir, "bindery", append([]string{"catalog", args[0], at}, args[1:]...)...)
			return sortedLines(catalogdtest.Directory(t, at))
		}
	}
	whole := func(dirs ...string) func() string { return func() string { return want(dirs...) } }
	four := " -i " + host + "/acme/four:v1 --platform linux/amd64,linux/arm64,linux/ppc64le,linux/s390x"
	for _, c := range []struct {
		args   string
		want   func() string
		images int
	}{
		{"build catalog catalog --server none", whole("catalog"), 1},
		{"build catalog catalog --server none --cache none --compression zstd", whole("catalog"), 1},
		{"build catalog catalog --server none --compression auto", whole("catalog"), 2},
		{"build catalog catalog --server none --cache opm-json", whole("catalog"), 1},
		{"build catalog catalog --server none --cache opm-pogreb --cache native", whole("catalog"), 1},
		{"build catalog many --server none", whole("many"), 1},
		{"build catalog many --server none --max-layers 3 --compression zstd", whole("many"), 1},
		{"build catalog many --server none --max-layers 124 --base " + base, whole("many"), 1},
		{"build catalog catalog --server none --base " + base, whole("catalog"), 1},
		{"build catalog catalog --server none --cache none --base " + nested, whole("catalog"), 1},
		{"build catalog small.db --server none --base " + nested, whole("migrated"), 1},
		{"build compose compose.yaml --server none --any-packages", whole("catalog", "one"), 1},
		{"build compose compose.yaml --server none --any-packages --base " + base, whole("catalog", "one"), 1},
		{"migrate small.db --server none", whole("migrated"), 1},
		{"migrate small.db --server none --base " + base, whole("migrated"), 1},
		{"migrate catalog --server none", whole("catalog"), 1},
		{"catalog rm " + from + " bar", edited("rm", "bar"), 1},
		{"catalog rm " + from + " bar --base " + nested, edited("rm", "bar"), 1},
		{"catalog filter " + from + " -p foo", edited("filter", "-p", "foo"), 1},
		{"catalog prune " + from + " --keep foo --compression zstd", edited("prune", "--keep", "foo"), 1},
		{"catalog prune-stranded " + from, whole("catalog"), 1},
		{"catalog promote " + from + " bar.v1.0.0 --channel next", edited("promote", "bar.v1.0.0", "--channel", "next"),
			1},
		{"catalog deprecate " + from + " bar.v1.0.0 --message old",
			edited("deprecate", "bar.v1.0.0", "--message", "old"), 1},
		{"catalog merge " + from + " one", whole("catalog", "one"), 1},
		{"index rm -o bar -f " + from + " --server none", edited("rm", "bar"), 1},
		{"index rm -o bar -f " + from + " -i " + base, edited("rm", "bar"), 1},
		{"index rm -o bar -f " + from + four, edited("rm", "bar"), 4},
		{"index rm -o bar --compression auto -f " + from + four, edited("rm", "bar"), 8},
	} {
		t.Run(strings.NewReplacer(host+"/acme/", "", " ", "_").Replace(c.args), func(t *testing.T) {
			layout := filepath.Join(t.TempDir(), "out")
			done(t, dir, "bindery",
				append(strings.Fields(c.args), "--output", "oci:"+layout+":v1", "-t", "acme/new:v1", "--use-http",
					"--no-cache")...)
			want := c.want()
			opened := 0
			eachImage(t, layout, func(img *images.Image) {
				opened++
				if got := sortedLines(catalogdtest.Stored(t, img)); got != want {
					t.Errorf("catalogd stores\n%s\nand the catalog is\n%s", got, want)
				}
			})
			if opened != c.images {
				t.Errorf("%d images", opened)
			}
		})
	}
}

// Archives have the same catalog, also those whose layers are not compressed.
func TestCatalogdReadsArchives(t *testing.T) {
	dir, _ := catalogdDir(t)
	want := sortedLines(catalogdtest.Directory(t, filepath.Join(dir, "catalog")))
	for _, c := range []struct{ to, format string }{{"docker-archive:a.tar", "oci"}, {"oci-archive:b.tar", "oci"},
		{"dir:c", "oci"}, {"dir:d", "docker"}} {
		to := c.to
		done(t, dir, "bindery", "build", "catalog", "catalog", "-t", "acme/new:v1", "--server", "none", "--output", to,
			"--format", c.format)
		img, err := imagetest.Client(t).Image(t.Context(), strings.Replace(to, ":", ":"+dir+"/", 1), v1.Platform{})
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		if got := sortedLines(catalogdtest.Stored(t, img)); got != want {
			t.Errorf("%s: catalogd stores\n%s", to, got)
		}
	}
}
