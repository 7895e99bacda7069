package mirror_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

const planSet = `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: registry.example.com/acme/catalog:v1
    packages:
    - name: alpha
    - name: nosuch
  additionalImages:
  - name: registry.example.com/extra/tool:v1
  - name: registry.example.com/extra/other:v1
  blockedImages:
  - name: other
`

// planCatalog returns a catalog with a package whose head needs another one.
func planCatalog() string {
	bundle := func(pkg, version, needs string) string {
		return fmt.Sprintf(`{"schema":"olm.bundle","package":%[1]q,"name":"%[1]s.v%[2]s","image":`+
			`"registry.example.com/acme/%[1]s:v%[2]s","properties":[{"type":"olm.package","value":{"packageName":%[1]q,`+
			`"version":%[2]q}}%[3]s]}`, pkg, version, needs)
	}
	return `{"schema":"olm.package","name":"alpha","defaultChannel":"stable"}
{"schema":"olm.channel","package":"alpha","name":"stable","entries":[{"name":"alpha.v1.0.0"},
{"name":"alpha.v1.1.0","replaces":"alpha.v1.0.0"},{"name":"alpha.v1.2.0","replaces":"alpha.v1.1.0"}]}
{"schema":"olm.package","name":"beta","defaultChannel":"stable"}
{"schema":"olm.channel","package":"beta","name":"stable","entries":[{"name":"beta.v1.0.0"}]}
` + bundle("alpha", "1.0.0", "") + bundle("alpha", "1.1.0", "") + bundle("beta", "1.0.0", "") +
		bundle("alpha", "1.2.0", `,{"type":"olm.package.required","value":{"packageName":"beta",`+
			`"versionRange":">=1.0.0"}}`)
}

func planDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "set.yaml"), planSet)
	clitest.WriteFile(t, filepath.Join(dir, "catalog", "catalog.json"), planCatalog())
	return dir
}

func TestMirrorPlan(t *testing.T) {
	dir := planDir(t)
	plan := []string{"mirror", "plan", "-c", "set.yaml", "--catalog", "registry.example.com/acme/catalog:v1=catalog"}
	planned := func(args ...string) string {
		t.Helper()
		got := clitest.RunProgram(t, dir, "bindery", args...)
		if got.Status != 4 {
			t.Fatalf("%+v", got)
		}
		return got.Stdout
	}
	text := planned(plan...)
	for _, want := range []string{"1 package, 1 bundle, 1 image, to acme/catalog:v1", "alpha.v1.2.0",
		"the head: no versions are given; default channel", `warning: package "nosuch": it is not in the catalog`,
		`needs package "beta" >=1.0.0`, "minVersion: 1.0.0 keeps their way", "extra/tool:v1", `blocked by "other"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var got struct {
		Catalogs []struct {
			Catalog      string
			Packages     map[string]struct{ Channels map[string][][]any }
			Problems     []struct{ Level, Code, Package string }
			Dependencies []struct{ Package string }
			Lost         []struct{ Versions []struct{ Version string } }
		}
		AdditionalImages []struct{ Name, Target, Blocked string }
	}
	answer := planned(append(plan, "-o", "json", "--with-dependencies", "--installed", "alpha=1.0.0")...)
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatal(err)
	}
	c := got.Catalogs[0]
	if len(c.Packages) != 2 || len(c.Packages["alpha"].Channels["stable"]) != 1 || len(c.Dependencies) != 1 ||
		len(c.Lost) != 1 || c.Lost[0].Versions[0].Version != "1.0.0" || len(got.AdditionalImages) != 2 {
		t.Errorf("got %s", answer)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{append(plan, "--strict"), "it is not in the catalog"},
		{append(plan, "-o", "xml"), "invalid --output"},
		{append(plan, "--installed", "alpha"), "invalid --installed"},
		{append(plan, "--compat", "opm"), "invalid --compat"},
		{[]string{"mirror", "plan", "-c", "set.yaml", "--catalog", "registry.example.com/acme/catalog:v2=catalog"},
			"hint: perhaps registry.example.com/acme/catalog:v1"},
		{[]string{"mirror", "plan"}, `"config" not set`},
		{[]string{"mirror", "plan", "-c", "none.yaml"}, "none.yaml"},
		{[]string{"mirror", "plan", "-c", "catalog/catalog.json"}, "catalog/catalog.json"},
	} {
		if got := clitest.RunProgram(t, dir, "bindery", test.args...); got.Status != 1 || got.Stdout != "" ||
			!strings.Contains(got.Stderr, test.want) {
			t.Errorf("%v: status %d\n%s%s", test.args, got.Status, got.Stdout, got.Stderr)
		}
	}
}

// A catalog is read out of a registry or a layout, and its digest is in the answer.
func TestMirrorPlanOfImages(t *testing.T) {
	dir := planDir(t)
	registry := testregistry.New(t)
	ref := registry.Host() + "/acme/catalog:v1"
	clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "--server", "none", "--cache", "none", "--push",
		"--use-http", "-t", ref)
	clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "--server", "none", "--cache", "none", "-t", "x:v1",
		"--output", "oci:layout:v1")
	conf := registry.RegistriesConf(t, "registry.example.com")
	for _, args := range [][]string{nil, {"--catalog", "registry.example.com/acme/catalog:v1=layout"},
		{"--catalog", "docker://registry.example.com/acme/catalog:v1=oci:layout:v1"}} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"mirror", "plan", "-c", "set.yaml", "-o", "json",
			"--registries-conf", conf, "--no-cache"}, args...)...)
		if got.Status != 4 || !strings.Contains(got.Stdout, `"digest": "sha256:`) ||
			!strings.Contains(got.Stdout, `"alpha.v1.2.0"`) {
			t.Errorf("%v: got %+v", args, got)
		}
	}
}

// The configurations of recorded runs are planned against the registry of these runs, also such as oc-mirror fails for
// without reason.
func TestMirrorPlanOfRecordedRuns(t *testing.T) {
	dir := t.TempDir()
	files := mirrortest.Runs(t)
	conf := mirrortest.Source(t).RegistriesConf(t, mirrortest.Host)
	mirrortest.Layout(t, filepath.Join(dir, "oci-catalog"))
	for run, want := range map[string]string{
		"01-m2m-heads": `"alpha-op.v`, "04-m2m-full": `"wholeCatalog": true`,
		"05-target-catalog": `"target": "my/own-catalog:t1"`,
		"06-oci-catalog":    `"target": "oci-catalog:latest"`, "10-multiarch-catalog": `"beta-op.v`,
		"17-catalog-by-digest": `"alpha-op.v`, "17b-catalog-by-tag-and-digest": `"target": "acme/catalog:v1"`,
		"18-catalog-absent": `"alpha-op.v`, "18b-catalog-no-label": "", "18c-filter-error": "",
		"18d-unknown-package":              `"nothing-kept"`,
		"18e-unknown-package-beside-known": `"unknown-package"`, "18f-empty-related-image": `"alpha-op.v`,
		"18g-tagless-related-image": `"alpha-op.v`, "18h-bundle-not-in-its-related-images": `"iota-op.v1.0.0"`,
		"13b-additional-errors": "", "13d-digest-in-registry-with-port": `"additionalImages"`,
		"23-same-catalog-two-filters": `"target": "acme/catalog:a"`, "19b-cs-template-missing": "",
	} {
		t.Run(run, func(t *testing.T) {
			set := strings.ReplaceAll(string(files[run+"/isc.yaml"]), "$FX", dir)
			if set == "" {
				t.Fatal("not recorded")
			}
			clitest.WriteFile(t, filepath.Join(dir, "isc.yaml"), set)
			got := clitest.RunProgram(t, dir, "bindery", "mirror", "plan", "-c", "isc.yaml", "-o", "json", "--registries-conf",
				conf, "--no-cache")
			status := 0
			switch {
			case want == "":
				status = 1
			case strings.HasPrefix(run, "18-") || strings.HasPrefix(run, "18d") || strings.HasPrefix(run, "18e") || strings.HasPrefix(run, "18g"):
				status = 4 // not all that is named is there, or can be mirrored
			}
			if got.Status != status || !strings.Contains(got.Stdout, want) {
				t.Errorf("status %d\n%s%s", got.Status, got.Stdout, got.Stderr)
			}
			if want == "" {
				t.Log(got.Stderr)
			}
		})
	}
}
