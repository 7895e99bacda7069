package cluster

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// The files for clusters that mirror writes are taken: for a first run, for a later one, from an archive, with each form of
// names, and with a template of the CatalogSource.
func TestMirrorResources(t *testing.T) {
	source, target := repository(t), repository(t)
	dir := t.TempDir()
	operator(t, dir, source)
	imageset := filepath.Join(dir, "imageset.yaml")
	template := filepath.Join(dir, "template.yaml")
	write(t, template, `apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: template
spec:
  sourceType: grpc
  updateStrategy: {registryPoll: {interval: 30m}}
  grpcPodConfig: {securityContextConfig: restricted}
`)
	write(t, imageset, fmt.Sprintf(`kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
    - catalog: %[1]s/acme/catalog:v1
      targetCatalogSourceTemplate: %[2]s
    - catalog: %[1]s/acme/catalog:v1
      targetCatalog: acme/second_catalog.of-the-team
  additionalImages:
    - name: %[1]s/acme/hello-operator:v1.0.0
`, source, template))
	media := filepath.Join(dir, "media")
	output(t, "mirror", "run", "-c", imageset, "file://"+media, "--use-http")
	for name, args := range map[string][]string{
		"direct":       {"--workspace", filepath.Join(dir, "direct")},
		"pinned":       {"--workspace", filepath.Join(dir, "pinned"), "--pin-catalogs"},
		"policy":       {"--workspace", filepath.Join(dir, "policy"), "--icsp"},
		"from archive": {"--from", media},
	} {
		t.Run(name, func(t *testing.T) {
			args = append([]string{"mirror", "run", "-c", imageset, "docker://" + target, "--use-http"}, args...)
			output(t, args...)
			workspace := args[len(args)-1]
			for _, place := range []string{"direct", "pinned", "policy"} {
				if strings.HasSuffix(name, place) {
					workspace = filepath.Join(dir, place)
				}
			}
			files, err := filepath.Glob(filepath.Join(workspace, "working-dir", "cluster-resources", "*.yaml"))
			if err != nil || len(files) < 4 {
				t.Fatal(files, err)
			}
			kinds := ""
			for _, file := range files {
				text := read(t, file)
				accepted(t, text)
				kinds += text
			}
			for _, kind := range []string{"ImageDigestMirrorSet", "ImageTagMirrorSet", "CatalogSource", "ClusterCatalog"} {
				if !strings.Contains(kinds, "kind: "+kind) {
					t.Errorf("no %s", kind)
				}
			}
		})
	}
	for format, kind := range map[string]string{"idms": "ImageDigestMirrorSet", "itms": "ImageTagMirrorSet", "icsp": "ImageContentSourcePolicy"} {
		t.Run(format, func(t *testing.T) {
			accepted(t, output(t, "registry", "mirror", source+"/acme/catalog:v1", "--to", target+"/olm", "-o", format, "--use-http"), kind)
		})
	}
}

// The files for clusters of the recorded runs of oc-mirror, which those of the program equal.
func TestRecordedResources(t *testing.T) {
	dir := t.TempDir()
	unpack(t, root+"testdata/mirror/runs.tar.zst", dir)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.cluster-resources.yaml"))
	if err != nil || len(files) < 40 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		accepted(t, read(t, file))
	}
}

// repository starts a registry in memory and returns its host.
func repository(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// operator pushes a catalog with one operator to a registry: its image, its bundle, the catalog.
func operator(t *testing.T, dir, host string) {
	t.Helper()
	write(t, filepath.Join(dir, "operator", "Containerfile"), "FROM scratch\nCOPY manager /manager\nENTRYPOINT [\"/manager\"]\n")
	write(t, filepath.Join(dir, "operator", "manager"), "the program\n")
	image := host + "/acme/hello-operator:v1.0.0"
	output(t, "build", "containerfile", filepath.Join(dir, "operator"), "-t", image, "--push", "--use-http")
	pinned := host + "/acme/hello-operator@" + digest(t, image)
	bundle := filepath.Join(dir, "bundle")
	write(t, filepath.Join(bundle, "manifests", "hello.clusterserviceversion.yaml"), fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: hello.v1.0.0
spec:
  displayName: Hello
  version: 1.0.0
  installModes:
    - {type: AllNamespaces, supported: true}
  install:
    strategy: deployment
    spec:
      deployments:
        - name: hello
          spec:
            selector: {matchLabels: {app: hello}}
            template:
              metadata: {labels: {app: hello}}
              spec:
                containers:
                  - {name: manager, image: %[1]q}
  relatedImages:
    - {name: manager, image: %[1]q}
`, pinned))
	output(t, "build", "bundle", bundle, "-p", "hello", "-c", "stable", "-e", "stable", "-t", host+"/acme/hello-bundle:v1.0.0", "--push", "--use-http")
	catalog := filepath.Join(dir, "catalog")
	output(t, "catalog", "add", catalog, host+"/acme/hello-bundle:v1.0.0", "--create", "--use-http")
	output(t, "build", "catalog", catalog, "-t", host+"/acme/catalog:v1", "--push", "--server", "none", "--use-http")
}

// digest returns the digest of an image.
func digest(t *testing.T, image string) string {
	t.Helper()
	var answer struct{ Digest string }
	decodeJSON(t, output(t, "inspect", image, "-o", "json", "--use-http"), &answer)
	return answer.Digest
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
