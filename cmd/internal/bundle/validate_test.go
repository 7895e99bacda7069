package bundle_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// opmErrors returns the errors in an answer of opm, sorted. opm prints addresses of some values; all of these values
// are true.
func opmErrors(t *testing.T, stderr string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^Error: Bundle validation errors: (.*)\n`).FindStringSubmatch(stderr)
	if m == nil {
		t.Fatalf("no error in\n%s", stderr)
	}
	errs := strings.Split(regexp.MustCompile(`0x[0-9a-f]+`).ReplaceAllString(m[1], "true"), ",Error: ")
	errs[0] = strings.TrimPrefix(errs[0], "Error: ")
	slices.Sort(errs)
	return errs
}

// Started as opm, images are validated with opm's options: the verdict, the errors and the format are the same.
func TestOpmBundleValidate(t *testing.T) {
	golden := filepath.Join(string(recorded.All(t)), "golden-bundle-validate") + "/"
	registry := testregistry.Recorded(t)
	conf := registry.RegistriesConf(t, testregistry.RecordedHost)
	for name, image := range map[string]string{
		"etcd-v0.9.4":                 "community/etcd:v0.9.4",
		"apicurito-v0.1.0":            "community/apicurito:v0.1.0",
		"cockroachdb-v2.0.9":          "community/cockroachdb:v2.0.9",
		"prometheus-v0.37.0":          "community/prometheus:v0.37.0",
		"pelorus-operator-v0.0.8":     "community/pelorus-operator:v0.0.8",
		"silicom-sts-operator-v0.0.1": "community/silicom-sts-operator:v0.0.1",
		"synth-deprec-v1.0.0":         "synth/synth-deprec:v1.0.0",
	} {
		for file, more := range map[string][]string{"validate": nil,
			"validate-opt": {"-o", "operatorhub,bundle-objects"}} {
			t.Run(name+"/"+file, func(t *testing.T) {
				args := append([]string{"alpha", "bundle", "validate", "-t", testregistry.RecordedHost + "/" + image,
					"-b", "none",
					"--use-http", "--no-cache", "--registries-conf", conf}, more...)
				got := clitest.RunProgram(t, t.TempDir(), "opm", args...)
				status := 0
				if strings.TrimSpace(clitest.ReadFile(t, golden+name+"/"+file+".rc")) != "0" {
					status = 1
				}
				if got.Status != status || got.Stdout != "" {
					t.Fatalf("want status %d, got %+v", status, got)
				}
				if status == 0 {
					return
				}
				is, want := opmErrors(t, got.Stderr), opmErrors(t, clitest.ReadFile(t, golden+name+"/"+file+".stderr"))
				if !slices.Equal(is, want) || !strings.Contains(got.Stderr,
					"\nUsage:\n  opm alpha bundle validate [flags]") {
					t.Errorf("got\n%s\nwant errors\n%s", got.Stderr, strings.Join(want, "\n"))
				}
			})
		}
	}
}
