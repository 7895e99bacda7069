package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// A value of the wrong type is one finding of "check", whichever profiles run, and the finding has the file, the field and
// the correction, and no type of Go.
func TestCheckFindsAWrongTypeOnce(t *testing.T) {
	for name, test := range map[string]struct{ file, old, text, want string }{
		"the version": {"manifests/csv.yaml", "version: 1.0.0\n  displayName", "version: 1.0\n  displayName",
			`csv.yaml:7:12: foo/foo.v1.0.0: spec.version: ClusterServiceVersion "foo.v1.0.0" cannot be read: ` +
				`is a number, expected a string (write it in quotes: "1.0")`},
		"below the spec": {"manifests/csv.yaml", "supported: true", `supported: "yes"`,
			`csv.yaml:12:38: foo/foo.v1.0.0: spec.installModes[0].supported: ClusterServiceVersion "foo.v1.0.0" cannot be ` +
				`read: is a string, expected a boolean`},
		"properties that are no list": {"metadata/properties.yaml", "", "properties: {type: olm.gvk, value: {}}\n",
			"properties.yaml:1:13: foo/foo.v1.0.0: properties: is an object, expected a list of types and values"},
		"a type that is a list": {"metadata/properties.yaml", "", "properties: [{type: [a], value: 5}]\n",
			"properties.yaml:1:21: foo/foo.v1.0.0: properties[0].type: is a list, expected a string"},
		"a property that is text": {"metadata/properties.yaml", "", "properties: [olm.gvk]\n",
			"properties.yaml:1:14: foo/foo.v1.0.0: properties[0]: is a string, expected an object with type and value"},
		"a value of a property": {"metadata/properties.yaml", "",
			"properties: [{type: olm.gvk, value: {group: a, kind: 7, version: v1}}]\n",
			`properties.yaml:1:54: foo/foo.v1.0.0: properties[0].value.kind: the type "olm.gvk": is a number, expected a string`},
		"a file that is no YAML": {"manifests/more.yaml", "", "a: [\n", "more.yaml:1: foo/foo.v1.0.0: yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clitest.WriteVerdictBundle(t, dir, test.file, test.old, test.text)
			for _, profiles := range []string{"opm,olmv1", "opm", "olmv1"} {
				got := clitest.RunProgram(t, dir, "bindery", "check", "b", "--profile", profiles)
				if profiles != "olmv1" && (got.Status == 0 || !strings.Contains(got.Stdout, test.want) ||
					!strings.Contains(got.Stdout, "failed: 1 error,")) {
					t.Errorf("--profile %s: want one error with %q in %s%s", profiles, test.want, got.Stdout, got.Stderr)
				}
				for _, words := range []string{"Go struct", "Go value", "unmarshal ", "unrecognized type"} {
					if strings.Contains(fmt.Sprint(got), words) {
						t.Errorf("--profile %s: %q in %s", profiles, words, got.Stdout)
					}
				}
			}
		})
	}
}
