package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/olmv1/catalogdtest"
)

// Blobs of unknown schemas, unknown fields and releases pass through every verb unchanged; verbs that select packages
// keep those of the packages that they keep. A verb edits a catalog directory or writes one ("DIR"), writes an image
// ("IMAGE"), or prints blobs.
func TestUnknownBlobsPassThroughEveryVerb(t *testing.T) {
	dir, registry := clitest.CatalogdDir(t)
	from := registry.Host() + "/acme/catalog:v1"
	// Unknown fields of known blobs are errors in a template.
	clitest.WriteFile(t, filepath.Join(dir, "template.json"), `{"schema":"olm.template.basic","entries":[`+
		strings.Join(clitest.ExtraBlobs[:2], ",")+`,{"schema":"olm.package","name":"foo","defaultChannel":"stable"},`+
		`{"schema":"olm.channel","package":"foo","name":"stable","entries":[{"name":"foo.v1.0.0"}]}]}`)
	clitest.WriteFile(t, filepath.Join(dir, "selection.yaml"), "packages:\n- name: foo\n  channels: [{name: stable}]\n")
	if err := os.CopyFS(filepath.Join(dir, "bundle"),
		os.DirFS("../../../testdata/bundles/synth-constraint/0.1.0")); err != nil {
		t.Fatal(err)
	}
	all := append(slices.Clone(clitest.ExtraBlobs), clitest.GlobalBlob)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"render catalog -o ndjson", all},
		{"render " + from + " -o ndjson", all},
		{"render catalog --migrate -o ndjson", all},
		{"template render template.json -o json", clitest.ExtraBlobs[:2]},
		{"migrate catalog DIR", all},
		{"migrate catalog DIR --migrate-level bundle-object-to-csv-metadata", all},
		{"migrate catalog DIR -o yaml", all},
		{"migrate " + from + " DIR", all},
		{"migrate catalog IMAGE --server none", all},
		{"build catalog catalog IMAGE --server none", all},
		{"build compose compose.yaml --any-packages --server none IMAGE", all},
		{"catalog add EDITED bundle --image-ref-template example.com/etcd:v1", all},
		{"catalog rm EDITED bar", all},
		{"catalog prune EDITED --keep foo", all},
		{"catalog prune-stranded EDITED", all},
		{"catalog promote EDITED bar.v1.0.0 --channel next", all},
		{"catalog deprecate EDITED bar.v1.0.0 --message old", all},
		{"catalog merge EDITED one", all},
		{"catalog merge EDITED one --replace", all},
		{"catalog filter EDITED -p foo", all},
		{"catalog filter EDITED --selection selection.yaml", all},
		{"catalog filter EDITED -p foo --to DIR --catalog-format yaml", all},
		{"catalog rm " + from + " bar IMAGE", all},
		{"catalog filter " + from + " -p foo IMAGE", all},
		{"catalog promote " + from + " bar.v1.0.0 --channel next IMAGE", all},
		{"index rm -o bar -f " + from + " --server none IMAGE", all},
		{"index prune -p foo -f " + from + " --server none IMAGE", all},
		{"index prune-stranded -f " + from + " --server none IMAGE", all},
		{"index deprecatetruncate -b bar/bar.v1.0.0 -f " + from + " --allow-package-removal --server none IMAGE", all},
		{"index add -b bundle --image-ref-template example.com/etcd:v1 -f " + from + " --server none IMAGE", all},
	} {
		t.Run(strings.NewReplacer(registry.Host()+"/acme/", "", " ", "_").Replace(c.args), func(t *testing.T) {
			work := t.TempDir()
			edited, out, image := filepath.Join(work, "edited"), filepath.Join(work, "out"), filepath.Join(work,
				"image")
			if err := os.CopyFS(edited, os.DirFS(filepath.Join(dir, "catalog"))); err != nil {
				t.Fatal(err)
			}
			var args []string
			for _, a := range strings.Fields(c.args) {
				switch a {
				case "EDITED":
					args = append(args, edited)
				case "DIR":
					args = append(args, out)
				case "IMAGE":
					args = append(args, "--output", "oci:"+image+":v1", "-t", "acme/new:v1", "--no-cache")
				default:
					args = append(args, a)
				}
			}
			if strings.Contains(c.args, "acme/") || strings.Contains(c.args, "compose") {
				args = append(args, "--use-http")
			}
			printed := clitest.Done(t, dir, "bindery", args...)
			var got string
			switch {
			case strings.Contains(c.args, "IMAGE"):
				got = catalogdtest.Stored(t, clitest.Opened(t, "oci:"+image+":v1", v1.Platform{}))
			case strings.Contains(c.args, "DIR"):
				got = catalogdtest.Directory(t, out)
			case strings.Contains(c.args, "EDITED"):
				got = catalogdtest.Directory(t, edited)
			default:
				clitest.WriteFile(t, filepath.Join(out, "printed.json"), printed)
				got = catalogdtest.Directory(t, out)
			}
			for _, blob := range c.want {
				if strings.Contains(c.args, " yaml") { // the decoder of YAML writes numbers its own way
					blob = strings.NewReplacer("2.50", "2.5", "1.0e+30", "1e+30").Replace(blob)
				}
				if !strings.Contains("\n"+got, "\n"+blob+"\n") {
					t.Errorf("missing: %s\nin\n%s", blob, got)
				}
			}
		})
	}
}

// A database has no place for them: writing them to one fails, rather than losing them.
func TestUnknownBlobsAreNotLostInADatabase(t *testing.T) {
	dir, _ := clitest.CatalogdDir(t)
	before := clitest.ReadFile(t, filepath.Join(dir, "small.db"))
	got := clitest.RunProgram(t, dir, "bindery", "catalog", "merge", "small.db", "catalog")
	if got.Status == 0 || !strings.Contains(got.Stderr, "--lossy") {
		t.Errorf("%+v", got)
	}
	if clitest.ReadFile(t, filepath.Join(dir, "small.db")) != before {
		t.Error("the database was changed")
	}
}

// A mirrored catalog keeps the blobs of the packages that are mirrored.
func TestUnknownBlobsAreMirrored(t *testing.T) {
	source, target := testregistry.New(t), testregistry.New(t)
	bundle := source.AddImage(t, "acme/etcd", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
	text := func(name string) string {
		return strings.NewReplacer("NAME", name, "IMAGE", "registry.example.com/acme/etcd@"+bundle.String()).
			Replace(clitest.OneBundle)
	}
	base := clitest.OpmFor("amd64")
	base.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
	extra := strings.ReplaceAll(clitest.ExtraBlobs[1], `"foo"`, `"etcd"`)
	base.Layers = append(base.Layers, map[string]string{"configs/etcd/catalog.json": text("etcd") + extra,
		"configs/old/catalog.json": text("old") + clitest.ExtraBlobs[0]})
	source.AddImage(t, "acme/catalog", "v1", base)
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "set.yaml"), clitest.ExampleImageSet)
	clitest.Done(t, dir, "bindery", "mirror", "run", "-c", "set.yaml", "--workspace", "ws", "docker://"+target.Host()+"/m",
		"--use-http", "--registries-conf", source.RegistriesConf(t, "registry.example.com"), "--no-cache")
	out := "oci:" + filepath.Join(dir, "out") + ":v1"
	clitest.Done(t, dir, "bindery", "copy", target.Host()+"/m/acme/catalog:v1", out, "--use-http")
	img := clitest.Opened(t, out, v1.Platform{})
	if got := catalogdtest.Stored(t, img); !strings.Contains(got, extra+"\n") || strings.Contains(got, "old") ||
		strings.Contains(got, "example.com.thing") {
		t.Errorf("catalogd stores\n%s", got)
	}
	if name := img.Annotations[v1.AnnotationBaseImageName]; name != "registry.example.com/acme/catalog:v1" {
		t.Errorf("the base is %q", name)
	}
}
