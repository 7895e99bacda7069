package catalog_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Every command of the group builds a new image from an edited one and keeps its labels, annotations and platforms; the
// new catalog equals that of the same edit in place.
func TestCatalogVerbsOnImages(t *testing.T) {
	dir := clitest.EditDir(t)
	r := testregistry.New(t)
	forArch := func(arch string, kind string) testregistry.Image {
		i := testregistry.Image{Platform: v1.Platform{OS: "linux", Architecture: arch},
			Labels: map[string]string{"arch": arch}, Annotations: map[string]string{"of": arch}}
		if kind == "db" {
			i.Labels[clitest.TestDatabaseLabel], i.Layers = "/x.db",
				[]map[string]string{{"x.db": clitest.ReadFile(t, filepath.Join(dir, "index.db"))}}
		} else {
			i.Labels[clitest.TestConfigsLabel], i.Layers = "/c",
				[]map[string]string{testregistry.Files(t, filepath.Join(dir, "catalog"), "c")}
		}
		return i
	}
	for _, kind := range []string{"db", "fbc"} {
		r.AddIndex(t, "acme/"+kind, "v1", map[string]string{"index": "yes"},
			[]testregistry.Image{forArch("arm64", kind), forArch("s390x", kind)})
	}
	for i, verb := range []string{
		"add CATALOG etcd --image-ref-template " + clitest.RefTemplate,
		"rm CATALOG etcd",
		"prune CATALOG --keep etcd",
		"promote CATALOG silicom-sts-operator.v0.0.4 --channel beta",
		"deprecate CATALOG etcdoperator.v0.9.2 --truncate",
		"merge CATALOG catalog --replace",
		"filter CATALOG -p etcd:singlenamespace-alpha --heads-only",
	} {
		t.Run(strings.Fields(verb)[0], func(t *testing.T) {
			for kind, in := range map[string]string{"db": "index.db", "fbc": "catalog"} {
				dir := clitest.EditDir(t)
				name, next := r.Host()+"/acme/"+kind+":v1", fmt.Sprintf("%s/acme/%s:new%d", r.Host(), kind, i)
				args := strings.Fields("catalog " + strings.Replace(verb, "CATALOG", name,
					1) + " -t " + next + " --push --server none --use-http --no-cache")
				out := strings.Fields(clitest.Done(t, dir, "bindery", args...))
				if len(out) != 2 || out[0] != "docker://"+next || !strings.HasPrefix(out[1],
					r.Host()+"/acme/"+kind+"@sha256:") {
					t.Errorf("%s: printed %q", kind, out)
				}
				clitest.Done(t, dir, "bindery", strings.Fields("catalog "+strings.Replace(verb, "CATALOG", in, 1))...)
				got, want := clitest.Done(t, dir, "bindery", "render", next, "--use-http", "--platform", "linux/s390x",
					"--no-cache"), clitest.Done(t, dir, "bindery", "render", in)
				if got != want {
					t.Errorf("%s: the image has\n%.1000s\nin place it is\n%.1000s", kind, got, want)
				}
				layout := filepath.Join(dir, "copied")
				clitest.Done(t, dir, "bindery", "index", "add", "-b=", "-f", next, "--output", "oci:"+layout+":v1",
					"--server=none", "--use-http", "--no-cache")
				for _, arch := range []string{"arm64", "s390x"} {
					if img := clitest.Opened(t, "oci:"+layout+":v1",
						v1.Platform{OS: "linux", Architecture: arch}); img.Config.Architecture != arch {
						t.Errorf("%s: no image for %s", kind, arch)
					}
				}
			}
		})
	}
	out := filepath.Join(t.TempDir(), "out")
	clitest.Done(t, dir, "bindery", "catalog", "rm", r.Host()+"/acme/db:v1", "etcd", "--output-format", "fbc", "--label",
		"more=1", "--output", "oci:"+out+":v1", "--server=none", "--use-http", "--no-cache")
	img := clitest.Opened(t, "oci:"+out+":v1", v1.Platform{OS: "linux", Architecture: "s390x"})
	if want := map[string]string{"arch": "s390x", "more": "1",
		clitest.TestConfigsLabel: "/configs"}; !maps.Equal(img.Config.Config.Labels, want) || img.Annotations["of"] != "s390x" {
		t.Errorf("labels %v, annotations %v", img.Config.Config.Labels, img.Annotations)
	}
	// Export the catalogs of both kinds of images to directories.
	for _, kind := range []string{"db", "fbc"} {
		clitest.Done(t, dir, "bindery", "catalog", "filter", r.Host()+"/acme/"+kind+":v1", "-p", "etcd", "--to", kind,
			"--use-http", "--no-cache")
		if got := clitest.Done(t, dir, "bindery", "list", "packages", kind); !strings.Contains(got, "etcd") ||
			strings.Contains(got, "silicom") {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

// A catalog on disk is changed in place and refuses image destinations; a catalog image requires one.
func TestCatalogImagesAreNamed(t *testing.T) {
	dir := clitest.EditDir(t)
	before := clitest.Snapshot(t, dir)
	for args, want := range map[string]string{
		"rm catalog etcd -t a/b:v1":                               "is not an image and is changed in place",
		"rm index.db etcd --output oci:out:v1":                    "is not an image and is changed in place",
		"rm registry.example.com/acme/catalog:v1 etcd":            "the result is a new image",
		"rm oci:layout:v1 etcd":                                   "the result is a new image",
		"rm oci:layout:v1 etcd --push":                            `required flag(s) "tag" not set`,
		"rm catlog etcd":                                          "no such file or directory",
		"filter catalog -p etcd --to out -t a/b:v1":               "--to \"out\" is a directory",
		"rm oci:layout:v1 etcd -t a/b:v1":                         "layout",
		"add oci:layout:v1 etcd -t a/b:v1 --output-format sqlit3": "expected (fbc|sqlite)",
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"catalog"}, strings.Fields(args)...)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if after := clitest.Snapshot(t, dir); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
}
