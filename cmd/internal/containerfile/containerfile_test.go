//go:build !nobuildah

package containerfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// The Dockerfile that opm generates can be built: the image has a cache that opm accepts and an unchanged catalog.
func TestBuildOfGeneratedCatalogDockerfile(t *testing.T) {
	dir := clitest.WorkDir(t)
	opm := testregistry.Image{Layers: []map[string]string{{"bin/opm": "opm", "etc/passwd": "root:x:0:0::/:\n"}}}
	registry := testregistry.New(t)
	registry.AddImage(t, "acme/opm", "v1", opm)
	name := registry.Host() + "/acme/opm:v1"
	clitest.Done(t, dir, "bindery", "generate", "dockerfile", "cat", "-i", name, "-b", name)
	args := []string{"build", "containerfile", "-f", "cat.Dockerfile", ".", "-t", "catalog:v1", "--platform",
		"linux/amd64", "--use-http"}
	out := clitest.Done(t, dir, "bindery", args...)
	if again := clitest.Done(t, dir, "bindery",
		append(args, "--no-cache", "--output", "oci:other:v1")...); last(again) != last(out) {
		t.Errorf("%s and then %s", out, again)
	}
	img, err := imagetest.Client(t).Image(t.Context(), "oci:"+filepath.Join(dir, "catalog.oci")+":v1", v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if got := strings.Join(append(img.Config.Config.Entrypoint, img.Config.Config.Cmd...),
		" "); got != "/bin/opm serve /configs --cache-dir=/tmp/cache" || len(img.Layers) != 2 {
		t.Errorf("%q, %d layers", got, len(img.Layers))
	}
	tree, err := img.Extract(t.Context(), []string{"configs", "tmp/cache"}, images.ExtractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	configs, cache := sub(t, tree, "configs"), sub(t, tree, "tmp/cache")
	if report, err := opmcache.Check(t.Context(), configs, cache); err != nil || !report.Valid() {
		t.Errorf("%+v %v", report, err)
	}
	want := clitest.Done(t, dir, "bindery", "render", "cat")
	if got := clitest.Done(t, dir, "bindery", "render", "oci:catalog.oci:v1"); got != want {
		t.Error("the catalog in the image is another one")
	}
}

// The Dockerfiles that operator-sdk and opm generate for a bundle can be built; the build fails if the image is not a
// bundle.
func TestBuildOfGeneratedBundleDockerfile(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	labels := "FROM scratch\n\nLABEL operators.operatorframework.io.bundle.mediatype.v1=registry+v1\nLABEL " +
		"operators.operatorframework.io.bundle.manifests.v1=manifests/\n" +
		"LABEL operators.operatorframework.io.bundle.metadata.v1=metadata/\nLABEL " +
		"operators.operatorframework.io.bundle.package.v1=etcd\n" +
		"LABEL operators.operatorframework.io.bundle.channels.v1=alpha\n\n"
	clitest.WriteFile(t, filepath.Join(dir, "bundle.Dockerfile"),
		labels+"COPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\n")
	clitest.WriteFile(t, filepath.Join(dir, "wrong.Dockerfile"), labels+"COPY bundle/manifests /manifests/\n")
	clitest.WriteFile(t, filepath.Join(dir, "run.Dockerfile"), labels+"COPY bundle /\nRUN true\nRUN false\n")
	clitest.Done(t, dir, "bindery", "build", "bundle", "--containerfile", "bundle.Dockerfile", ".", "-t", "etcd:v1")
	rendered := clitest.Done(t, dir, "bindery", "render", "oci:etcd.oci:v1")
	if !strings.Contains(rendered, `"etcdoperator.v0.9.4"`) {
		t.Errorf("%.500s", rendered)
	}
	for file, want := range map[string]string{"wrong.Dockerfile": "the image is not a valid bundle",
		"run.Dockerfile": "run.Dockerfile:10: RUN needs a process in the image\n"} {
		got := clitest.RunProgram(t, dir, "bindery", "build", "bundle", "--containerfile", file, ".", "-t", "other:v1")
		if got.Status != 1 || !strings.Contains(got.Stderr, want) || got.Stdout != "" {
			t.Errorf("%s: %+v", file, got)
		}
		if _, err := os.Stat(filepath.Join(dir, "other.oci")); err == nil {
			t.Errorf("%s: something was written", file)
		}
	}
	// A label that contradicts the annotations is reported.
	text := strings.Replace(clitest.ReadFile(t, filepath.Join(dir, "bundle.Dockerfile")),
		"LABEL operators.operatorframework.io.bundle.package.v1=etcd\n",
		"LABEL operators.operatorframework.io.bundle.package.v1=other\n", 1)
	if err := os.WriteFile(filepath.Join(dir, "label.Dockerfile"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got := clitest.RunProgram(t, dir, "bindery", "build", "bundle", "--containerfile", "label.Dockerfile", ".", "-t",
		"label:v1", "--dry-run")
	if got.Status != 0 || !strings.Contains(got.Stderr, `the label of the image is "other" and the annotation "etcd"`) {
		t.Errorf("%+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "build", "containerfile", "-f", "run.Dockerfile", ".", "-t",
		"x:v1"); !strings.Contains(got.Stderr, "make build-full") {
		t.Error(got.Stderr)
	}
}

// A multi-platform image uses the base of each platform and shares its own layer; its digest does not depend on the
// order of downloads.
func TestContainerfileForSeveralPlatforms(t *testing.T) {
	dir := t.TempDir()
	registry := testregistry.New(t)
	var of []testregistry.Image
	for _, arch := range []string{"amd64", "arm64"} {
		i := testregistry.Image{Layers: []map[string]string{{"arch": arch}}}
		i.Platform.OS, i.Platform.Architecture = "linux", arch
		of = append(of, i)
	}
	registry.AddIndex(t, "acme/base", "v1", nil, of)
	clitest.WriteFile(t, filepath.Join(dir, "c", "Containerfile"),
		"FROM "+registry.Host()+"/acme/base:v1\nARG TARGETARCH\nLABEL arch=$TARGETARCH\nCOPY f /f\n")
	clitest.WriteFile(t, filepath.Join(dir, "c", "f"), "F")
	push := registry.Host() + "/acme/made:v1"
	out := clitest.Done(t, dir, "bindery", "build", "containerfile", "c", "-t", push, "--push", "--output", "oci:made:v1",
		"--use-http", "--platform", "linux/amd64,linux/arm64", "--compression", "zstd", "--metadata-file",
		"account.json")
	if !strings.Contains(last(out), "/acme/made@sha256:") {
		t.Error(out)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := imagetest.Client(t).Image(t.Context(), "oci:"+filepath.Join(dir, "made")+":v1",
			v1.Platform{OS: "linux", Architecture: arch})
		if err != nil {
			t.Fatal(err)
		}
		if got := img.Config; got.Architecture != arch || got.Config.Labels["arch"] != arch || len(img.Layers) != 2 {
			t.Errorf("%s: %+v", arch, got)
		}
		if err := img.Close(); err != nil {
			t.Error(err)
		}
	}
	if account := clitest.ReadFile(t, filepath.Join(dir, "account.json")); strings.Count(account, `"kind": "files"`) != 1 ||
		strings.Count(account, `"kind": "base"`) != 2 {
		t.Error(account)
	}
	// If the base lacks a platform, the error names the instruction.
	got := clitest.RunProgram(t, dir, "bindery", "build", "containerfile", "c", "-t", push, "--use-http", "--platform",
		"linux/s390x", "--dry-run")
	if got.Status != 1 || !strings.Contains(got.Stderr, "Containerfile:1: FROM: ") {
		t.Errorf("%+v", got)
	}
}

// last returns the last line of an answer.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func sub(t *testing.T, fsys fs.FS, dir string) fs.FS {
	t.Helper()
	s, err := fs.Sub(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
