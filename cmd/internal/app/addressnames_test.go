package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// The name of an image has no IPv6 address.
func TestAddressesAreNoRegistries(t *testing.T) {
	dir := clitest.WorkDir(t)
	set := "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n  additionalImages:\n  - name: "
	clitest.WriteFile(t, filepath.Join(dir, "isc.yaml"), set+"quay.io/a/b:v1\n")
	clitest.WriteFile(t, filepath.Join(dir, "six.yaml"), set+`"[fd00::1]:5000/a/b:v1"`+"\n")
	const image = "[fd00::1]:5000/a/b:v1"
	for line, want := range map[string]bool{
		"inspect " + image: true, "inspect docker://" + image: true, "render " + image: true, "tree " + image: true,
		"copy oci:x docker://" + image: true, "build catalog cat --push -t " + image: true,
		"build catalog cat -t a/b:v1 --output docker://" + image:          true,
		"build catalog cat -t a/b:v1 --server none --base " + image:       true,
		"mirror run -c six.yaml file://out":                               true,
		"mirror run -c isc.yaml --workspace ws docker://[fd00::1]:5000/m": true,
		"mirror run -c isc.yaml --workspace ws docker://[::1]":            true,
		"registry mirror small.db --to [fd00::1]:5000":                    true,
		"index add -b " + image + " -t a/b:v1":                            true,
		"bundle unpack -o out " + image:                                   true,
		"inspect [x]/a":                                                   false,
		"inspect localhost:1/a/b:v1 --retries 0":                          false,
	} {
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(line)...)
		if got.Status == 0 || strings.Contains(got.Stderr, "no IPv6 addresses: use a name for the registry") != want {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
