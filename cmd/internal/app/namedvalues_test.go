package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	ocmirrorcmd "github.com/operator-bindery/bindery/cmd/internal/ocmirror"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// An unknown value is refused with the known ones.
func TestUnknownValuesListTheKnownOnes(t *testing.T) {
	dir := clitest.WorkDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "semvers.yaml"), "schema: olm.semvers\n")
	const levels, schemas = "none bundle-object-to-csv-metadata", "olm.template.basic, olm.semver, olm.template.substitutes"
	for line, want := range map[string]string{
		"render cat --migrate-level foo":                                   levels,
		"migrate small.db out --migrate-level foo":                         levels,
		"diff cat small.db --migrate-level foo":                            levels,
		"build catalog cat -t a/b:v1 --server none --migrate-level foo":    levels,
		"template render basic semvers.yaml --migrate-level foo":           levels,
		"template render semvers.yaml":                                     schemas,
		"template render semver semvers.yaml":                              schemas,
		"template render basic semvers.yaml":                               schemas,
		"template render foo semvers.yaml":                                 "basic semver substitutes",
		"render cat --platform linux/amd65":                                "(386|amd64|arm|arm64|",
		"build catalog cat -t a/b:v1 --server none --platform linux/amd65": "(386|amd64|arm|arm64|",
		"build catalog cat -t a/b:v1 --server none --platform amd64":       "expected linux/ARCH or linux/ARCH/VARIANT",
		"serve cat --compat foo":                                           "expected (opm)",
		"render cat -o foo":                                                "(json|yaml|ndjson)",
		"build catalog cat -t a/b:v1 --format foo":                         "(oci|docker)",
		"build catalog cat -t a/b:v1 --compression foo":                    "(gzip|zstd|auto)",
		"build catalog cat -t a/b:v1 --server none --cache foo":            "native",
		"graph cat -o foo":                                                 "(svg|html|mermaid|dot)",
		"list images cat --by foo":                                         "(package|channel|bundle)",
		"diff cat small.db --only foo":                                     "packages|channels",
		"check cat --profile foo":                                          "opm",
		"check cat --fail-on foo":                                          "(error|warning)",
		"copy oci:x oci:y --with foo":                                      "(signatures|referrers|none)",
		"inspect oci:x -o foo":                                             "(text|json|yaml)",
		"sbom oci:x --format foo":                                          "spdx",
		"keys generate --algorithm foo":                                    "ed25519",
		"registry mirror small.db --to example.com/x -o foo":               "mapping",
		"mirror run -c x file://y --on-missing foo":                        "skip-bundle",
		"mirror run -c x file://y --sparse foo":                            "keep",
		"version --log-level foo":                                          "(debug|info|warn|error)",
	} {
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(line)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// An error of a file that a variable names has the name of the variable.
func TestVariablesAreNamed(t *testing.T) {
	dir, r := clitest.WorkDir(t), testregistry.New(t)
	clitest.WriteFile(t, filepath.Join(dir, "bad"), "{")
	for variable, file := range map[string]string{"REGISTRY_AUTH_FILE": "nosuch", "CONTAINERS_REGISTRIES_CONF": "bad",
		"CONTAINERS_POLICY_JSON": "bad"} {
		for _, name := range []string{"bindery", "oc-mirror"} {
			line := "inspect " + r.Host() + "/a/b:v1 --use-http"
			if name == ocmirrorcmd.Name {
				line = "list operators --src-tls-verify=false --secure-policy --catalog " + r.Host() + "/a/b:v1"
			}
			cmd := clitest.Command(dir, name, strings.Fields(line)...)
			cmd.Env = append(cmd.Env, variable+"="+filepath.Join(dir, file))
			if got := clitest.Finish(t, cmd); got.Status != 1 || !strings.Contains(got.Stderr, "the variable "+variable+" names this file") {
				t.Errorf("%s %s: %+v", name, variable, got)
			}
		}
	}
}

// The error of a registry that is down says with what it was tried.
func TestSchemeOfARegistryThatIsDown(t *testing.T) {
	for line, want := range map[string]string{"": `"https://127.0.0.1:1/v2/`, "--tls-verify=false": `"https://127.0.0.1:1/v2/`,
		"--use-http": "connection refused (https and http were tried)"} {
		got := clitest.RunProgram(t, t.TempDir(), "bindery", strings.Fields("inspect 127.0.0.1:1/a/b:v1 --retries 0 "+line)...)
		if got.Status != 1 || !strings.Contains(got.Stderr, want) || !strings.Contains(got.Stderr, "nothing listens there") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
