package build_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Without a server the image of each platform has the same layers: several platforms make an index, whose images are
// those that a build for one platform makes, by every command that builds catalog images.
func TestIndexWithoutServer(t *testing.T) {
	dir, registry := t.TempDir(), testregistry.New(t)
	for _, name := range []string{"foo", "bar"} {
		clitest.WriteFile(t, filepath.Join(dir, "catalog", name, "catalog.json"), clitest.PackageText(name))
	}
	host := registry.Host()
	registry.AddIndex(t, "acme/base", "v1", nil, []testregistry.Image{clitest.OpmFor("amd64"), clitest.OpmFor("arm64")})
	clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "small.db"))
	clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "-t", host+"/acme/part:v1", "--server", "none", "--push",
		"--use-http")
	clitest.WriteFile(t, filepath.Join(dir, "compose.yaml"), "name: all\nrepo: "+host+"/acme/all\ntag: v1\nreferences:\n"+
		"- {name: part, image: "+host+"/acme/part:v1}\n")
	catalog := "build catalog catalog -t " + host + "/acme/catalog:v1"
	for _, args := range []string{
		catalog,
		catalog + " --cache none",
		catalog + " --compression zstd",
		catalog + " --cache opm-pogreb --max-layers 3",
		catalog + " --base " + host + "/acme/base:v1",
		"build catalog small.db -t " + host + "/acme/db:v1",
		"build compose compose.yaml --any-packages",
		"index rm -o foo -f " + host + "/acme/part:v1 -t " + host + "/acme/rm:v1",
		"catalog filter " + host + "/acme/part:v1 --package foo -t " + host + "/acme/filter:v1",
		"migrate small.db -t " + host + "/acme/migrated:v1",
	} {
		build := func(platform string) (layout, digest string) {
			t.Helper()
			layout = filepath.Join(t.TempDir(), "out")
			more := []string{"--server", "none", "--use-http", "--no-cache", "--digest-file", layout + ".digest",
				"--output", "oci:" + layout + ":v1", "--platform", platform}
			clitest.Done(t, dir, "bindery", append(strings.Fields(args), more...)...)
			return layout, clitest.ReadFile(t, layout+".digest")
		}
		layout, digest := build("linux/amd64,linux/arm64")
		if _, again := build("linux/amd64,linux/arm64"); again != digest {
			t.Errorf("%s: %s, the second time %s", args, digest, again)
		}
		var index v1.Index
		text := clitest.ReadFile(t, filepath.Join(layout, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:")))
		if err := json.Unmarshal([]byte(text), &index); err != nil || len(index.Manifests) != 2 {
			t.Fatalf("%s: %v\n%s", args, err, text)
		}
		for i, arch := range []string{"amd64", "arm64"} {
			m := index.Manifests[i]
			if _, one := build("linux/" + arch); one != m.Digest.String() || m.Platform == nil ||
				m.Platform.Architecture != arch {
				t.Errorf("%s: for %s alone %s, in the index %s of %+v", args, arch, one, m.Digest, m.Platform)
			}
		}
		eachImage(t, layout, func(img *images.Image) {
			for _, h := range img.Config.History {
				if strings.Contains(h.CreatedBy, "server") {
					t.Errorf("%s: %s", args, h.CreatedBy)
				}
			}
		})
	}
	// Every other place takes the index as well, with one digest; an archive of docker holds one image, and says so.
	want := strings.TrimSpace(clitest.Done(t, dir, "bindery", append(strings.Fields(catalog), "--server", "none", "--platform",
		"linux/amd64,linux/arm64,linux/amd64", "--use-http", "--push", "--output", "oci-archive:a.tar:v1", "--output",
		"dir:d", "--digest-file", "digest")...))
	if got := clitest.ReadFile(t, filepath.Join(dir, "digest")); !strings.HasSuffix(want, "@"+got) {
		t.Errorf("%s, %s", want, got)
	}
	for _, ref := range []string{host + "/acme/catalog:v1", "oci-archive:a.tar:v1", "dir:d"} {
		for _, arch := range []string{"amd64", "arm64"} {
			if got := clitest.Done(t, dir, "bindery", "list", "packages", ref, "--use-http", "--platform", "linux/"+arch); strings.Count(got, "\n") != 3 {
				t.Errorf("%s for %s: %s", ref, arch, got)
			}
		}
	}
	if got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(catalog), "--server", "none", "--platform",
		"linux/amd64,linux/arm64", "--output", "docker-archive:b.tar")...); got.Status != 1 ||
		!strings.Contains(got.Stderr, "an archive of docker holds the image of one platform") {
		t.Errorf("%+v", got)
	}
	// A platform that the base lacks is named.
	if got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(catalog), "--server", "none", "--use-http", "--base",
		host+"/acme/base:v1", "--platform", "linux/amd64,linux/s390x", "--dry-run")...); got.Status != 1 ||
		!strings.Contains(got.Stderr, "no image for linux/s390x in the index") {
		t.Errorf("%+v", got)
	}
}
