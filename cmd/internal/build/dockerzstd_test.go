package build_test

import (
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// An image in Docker's format whose layers have zstd is read, and every command that reads or copies it warns, once.
func TestZstdInDockersFormat(t *testing.T) {
	dir, r := t.TempDir(), testregistry.New(t)
	clitest.WriteFile(t, filepath.Join(dir, "cat", "catalog.json"), clitest.PackageText("etcd"))
	clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "-t", r.Host()+"/a/oci:v1", "--push", "--use-http", "--server", "none",
		"--compression", "zstd")
	text := strings.NewReplacer(v1.MediaTypeImageManifest, manifest.DockerV2Schema2MediaType,
		v1.MediaTypeImageConfig, manifest.DockerV2Schema2ConfigMediaType,
		v1.MediaTypeImageLayerZstd, "application/vnd.docker.image.rootfs.diff.tar.zstd").
		Replace(string(r.Manifest("a/oci", "v1")))
	r.AddManifest("a/docker", "v1", manifest.DockerV2Schema2MediaType, []byte(text))
	const set = "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n"
	const warning = "has layers with zstd, which Docker's format of manifests does not know"
	for of, want := range map[string]int{"docker": 1, "oci": 0} {
		name := r.Host() + "/a/" + of + ":v1"
		clitest.WriteFile(t, filepath.Join(dir, of+".yaml"), set+"  additionalImages:\n  - name: "+name+"\n")
		clitest.WriteFile(t, filepath.Join(dir, of+"-catalog.yaml"), set+"  operators:\n  - catalog: "+name+"\n    full: true\n")
		for _, line := range []string{"inspect NAME", "inspect --deep NAME", "render NAME", "verify NAME", "list packages NAME",
			"copy NAME dir:copied-OF --with none", "copy NAME docker://HOST/copied/OF:v1", "inspect dir:copied-OF",
			"mirror run -c OF.yaml file://archive-OF", "mirror run -c OF.yaml docker://HOST/mirrored --workspace ws-OF"} {
			line = strings.NewReplacer("NAME", name, "OF", of, "HOST", r.Host()).Replace(line)
			got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(line), "--use-http", "--no-cache")...)
			if got.Status != 0 || strings.Count(got.Stderr, warning) != want {
				t.Errorf("%s: %+v", line, got)
			}
		}
	}
}
