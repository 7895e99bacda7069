package app_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// mirrorExample runs an example that copies: from the fixture's registry to another one, after the runs that it builds
// on.
func mirrorExample(t *testing.T, dir string, args []string) {
	t.Helper()
	source, target := mirrortest.Source(t), testregistry.New(t)
	target.Separate(true)
	conf := source.RegistriesConf(t, mirrortest.Host)
	clitest.WriteFile(t, filepath.Join(dir, "imageset.yaml"), clitest.MirrorImageSet)
	clitest.WriteFile(t, filepath.Join(dir, "delete.yaml"), clitest.DeleteImageSet)
	mirror := func(args ...string) {
		args = append([]string{"mirror"}, args...)
		for i, a := range args {
			if rest, ok := strings.CutPrefix(a, "docker://"+mirrortest.Host); ok {
				args[i] = "docker://" + target.Host() + rest
			}
		}
		clitest.Done(t, dir, "bindery", append(args, "--registries-conf", conf, "--use-http", "--no-cache")...)
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
