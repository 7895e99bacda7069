package bundle_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
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

func TestBundleValidate(t *testing.T) {
	for _, c := range []struct {
		name, program, args string
		break_              func(t *testing.T, dir string)
		status              int
		want                string
	}{
		{"a good one", "bindery", "bundle validate bundle", nil, 0, `"bundle" is a valid bundle; OLM unpacks it to `},
		{"under opm's name", "opm", "alpha bundle validate -t bundle -b podman", nil, 0, ""},
		{"errors", "bindery", "bundle validate bundle", breakBundle, 1,
			"error: \"bundle\" has 2 errors:\n  bundle/manifests/quota.yaml:2:7: kind: ResourceQuota is not supported type " +
				"for registryV1 bundle\n  bundle/metadata/dependencies.yaml:3:10: dependencies[0].value: Label information is " +
				"missing\n"},
		{"errors under opm's name", "opm", "alpha bundle validate -t bundle", breakBundle, 1,
			"Error: Bundle validation errors: ResourceQuota is not supported type for registryV1 bundle,Label " +
				"information is missing\nUsage:\n"},
		{"as an error for scripts", "bindery", "bundle validate bundle --error-format json", breakBundle, 1,
			`{"class":3,"message":"\"bundle\" has 2 errors:`},
		{"strict", "bindery", "bundle validate bundle --strict", nil, 1, "csv.Spec.minKubeVersion is not informed"},
		{"plain", "bindery", "bundle validate --plain bundle", nil, 1,
			`to have value "plain+v0" instead of "registry+v1"`},
		{"selected", "bindery", "bundle validate bundle -s image-digests,good-practices", nil, 0,
			"warning: bundle/manifests/etcdoperator.v0.9.4.clusterserviceversion.yaml:"},
		{"unknown validator", "bindery", "bundle validate bundle -s nonsense", nil, 1,
			`error: invalid --select value: unknown validator "nonsense", expected one of ["alpha-deprecated-apis"`},
		{"nothing there", "bindery", "bundle validate nosuch", nil, 1,
			"hint: the argument is a bundle's directory, or an image as REGISTRY/REPOSITORY:TAG"},
		{"a database", "bindery", "bundle validate index.db", nil, 1, `"index.db" is a database, not a bundle`},
		{"no argument", "bindery", "bundle validate", nil, 1, `required flag(s) "tag" not set`},
		{"no tag for opm", "opm", "alpha bundle validate", nil, 1, `Error: required flag(s) "tag" not set`},
		{"another builder", "opm", "alpha bundle validate -t bundle -b nonsense", nil, 1,
			`is not supported image builder`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := clitest.BundleDir(t)
			clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "index.db"))
			if c.break_ != nil {
				c.break_(t, dir)
			}
			before := clitest.Snapshot(t, dir)
			got := clitest.RunProgram(t, dir, c.program, strings.Fields(c.args)...)
			if got.Status != c.status || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) {
				t.Errorf("got %+v, want status %d and\n%s", got, c.status, c.want)
			}
			if after := clitest.Snapshot(t, dir); after != before {
				t.Errorf("files before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// breakBundle adds two errors to a bundle.
func breakBundle(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"manifests/quota.yaml":       "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: q\n",
		"metadata/dependencies.yaml": "dependencies:\n- type: olm.label\n  value: {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "bundle", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBundleValidateForScripts(t *testing.T) {
	type answer struct {
		Passed        bool
		Problems      []bundle.Problem
		ConfigMapSize struct{ Plain, Encoded, Limit int64 }
	}
	dir := clitest.BundleDir(t)
	for _, good := range []bool{true, false} {
		if !good {
			breakBundle(t, dir)
		}
		got := clitest.RunProgram(t, dir, "bindery", "bundle", "validate", "bundle", "-o", "json")
		var a answer
		if err := json.Unmarshal([]byte(got.Stdout), &a); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		if a.Passed != good || (got.Status == 0) != good || got.Stderr != "" || a.ConfigMapSize.Limit != 1<<20 ||
			a.ConfigMapSize.Encoded == 0 || a.ConfigMapSize.Plain < a.ConfigMapSize.Encoded {
			t.Errorf("good: %v, got %+v", good, got)
		}
		rules := map[string]bool{}
		for _, p := range a.Problems {
			if p.Severity == bundle.SeverityError {
				rules[p.Rule] = true
			}
		}
		if rules["kind"] == good || rules["dependency-invalid"] == good {
			t.Errorf("good: %v, errors %v", good, rules)
		}
	}
}
