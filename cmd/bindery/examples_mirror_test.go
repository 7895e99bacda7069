package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// mirrorImageSet is the image set of the examples of mirroring: operators of the fixture.
const mirrorImageSet = `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: registry.example.com/acme/catalog:v1
    packages:
    - name: alpha-op
    - name: beta-op
  additionalImages:
  - name: registry.example.com/extra/tool:v1
`

const deleteImageSet = `kind: DeleteImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
delete:
  operators:
  - catalog: registry.example.com/acme/catalog:v1
    packages:
    - name: alpha-op
`

// mirrorExample runs an example that copies: from the fixture's registry to another one, after the runs that it builds
// on.
func mirrorExample(t *testing.T, dir string, args []string) {
	t.Helper()
	source, target := mirrortest.Source(t), testregistry.New(t)
	target.Separate(true)
	conf := source.RegistriesConf(t, mirrortest.Host)
	writeFile(t, filepath.Join(dir, "imageset.yaml"), mirrorImageSet)
	writeFile(t, filepath.Join(dir, "delete.yaml"), deleteImageSet)
	mirror := func(args ...string) {
		args = append([]string{"mirror"}, args...)
		for i, a := range args {
			if rest, ok := strings.CutPrefix(a, "docker://"+mirrortest.Host); ok {
				args[i] = "docker://" + target.Host() + rest
			}
		}
		done(t, dir, "bindery", append(args, "--registries-conf", conf, "--use-http", "--no-cache")...)
	}
	dest := "docker://" + mirrortest.Host + "/olm"
	if slices.Contains(args, "media") || slices.Contains(args, "file://media") && args[1] == "verify" {
		mirror("run", "-c", "imageset.yaml", "file://media")
	}
	if slices.Contains(args, "parts") {
		mirror("run", "-c", "imageset.yaml", "--shard", "1/2", "file://parts/1")
		mirror("run", "-c", "imageset.yaml", "--shard", "2/2", "file://parts/2")
	}
	if args[1] != "run" {
		mirror("run", "-c", "imageset.yaml", "--workspace", "mirror", dest)
	}
	if slices.Contains(args, "delete-images.yaml") && !slices.Contains(args, "-c") {
		mirror("delete", "-c", "delete.yaml", "--workspace", "mirror", "--list", "delete-images.yaml", dest)
	}
	if strings.Contains(strings.Join(args, " "), "--against") {
		mirror("inventory", dest, "--to", "inventory.json.gz")
	}
	mirror(args[1:]...)
}
