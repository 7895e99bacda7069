package build_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/images"
)

// Every command that builds an image over a base names the base in the annotations of the manifest.
func TestImagesNameTheirBase(t *testing.T) {
	dir, registry := clitest.CatalogdDir(t)
	base, from := registry.Host()+"/acme/base:v1", registry.Host()+"/acme/catalog:v1"
	top := digest.FromBytes(registry.Manifest("acme/base", "v1"))
	clitest.WriteFile(t, filepath.Join(dir, "Containerfile"), "FROM "+base+" AS first\nFROM first\nCOPY one /configs\n")
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"build catalog catalog --server none --base " + base,
		"build catalog catalog --server none --compression zstd --base docker://" + base,
		"build catalog small.db --server none --base " + base,
		"build bundle bundle --base " + base,
		"build compose compose.yaml --any-packages --server none --base " + base,
		"build containerfile .",
		"migrate small.db --base " + base,
		"catalog rm " + from + " bar --base " + base,
		"index rm -o bar -f " + from + " -i " + base,
	} {
		t.Run(strings.ReplaceAll(args, registry.Host(), "host"), func(t *testing.T) {
			if strings.Contains(args, "containerfile") && clitest.RunProgram(t, dir, "bindery", "build", "containerfile",
				"--help").Status != 0 {
				t.Skip("built without Containerfiles")
			}
			out := filepath.Join(t.TempDir(), "out")
			clitest.Done(t, dir, "bindery", append(strings.Fields(args), "--output", "oci:"+out+":v1", "-t", "acme/new:v1",
				"--use-http", "--no-cache", "--annotation", "mine=yes")...)
			eachImage(t, out, func(built *images.Image) {
				name, of := built.Annotations[v1.AnnotationBaseImageName],
					built.Annotations[v1.AnnotationBaseImageDigest]
				if name != base || of != top.String() || built.Annotations["mine"] != "yes" {
					t.Errorf("the base is %q %q, expected %q %q", name, of, base, top)
				}
			})
		})
	}
	out := filepath.Join(t.TempDir(), "out")
	clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "--server", "none", "--output", "oci:"+out+":v1", "-t",
		"acme/new:v1")
	if a := clitest.Opened(t, "oci:"+out+":v1", v1.Platform{}).Annotations; len(a) > 0 {
		t.Errorf("an image without a base has the annotations %v", a)
	}
}
