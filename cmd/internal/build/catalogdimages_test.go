package build_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/olmv1/catalogdtest"
)

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
				collect(clitest.ReadFile(t, filepath.Join(layout, "blobs", "sha256", d.Digest.Encoded())))
				continue
			}
			leaves = append(leaves, d)
		}
	}
	whole := clitest.ReadFile(t, file)
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
	dir, registry := clitest.CatalogdDir(t)
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
			clitest.Done(t, dir, "bindery", append([]string{"catalog", args[0], at}, args[1:]...)...)
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
			clitest.Done(t, dir, "bindery",
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
	dir, _ := clitest.CatalogdDir(t)
	want := sortedLines(catalogdtest.Directory(t, filepath.Join(dir, "catalog")))
	for _, c := range []struct{ to, format string }{{"docker-archive:a.tar", "oci"}, {"oci-archive:b.tar", "oci"},
		{"dir:c", "oci"}, {"dir:d", "docker"}} {
		to := c.to
		clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "-t", "acme/new:v1", "--server", "none", "--output", to,
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
