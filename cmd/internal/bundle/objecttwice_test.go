package bundle_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// An object that is in a bundle and generated too, or is generated twice, is refused by Boxcutter only.
func TestObjectTwice(t *testing.T) {
	t.Parallel()
	const csv = "manifests/widget.clusterserviceversion.yaml"
	boxcutter := ", Boxcutter says: duplicate object found in phases: "
	permission := "      - serviceAccountName: widget-controller\n        rules:\n        - apiGroups: [a]\n" +
		"          resources: [b]\n          verbs: [get]\n"
	bundles, _ := clitest.ClusterBundles(t)
	for name, c := range map[string]struct {
		file, text, severity, state, want string
	}{
		"account": {"manifests/account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: widget-controller\n",
			"warning", "installable", `ServiceAccount "widget-controller" is there twice`},
		"equal permissions": {csv, strings.Replace(bundles["widget"][csv], "      permissions:\n",
			"      permissions:\n"+permission+permission, 1), "warning", "installable", "the runtime Helm applies one of them" + boxcutter + "roles"},
		"two files": {"manifests/configmap-more.yaml", bundles["widget"]["manifests/configmap-widget-config.yaml"] + "immutable: true\n",
			"warning", "installable", `ConfigMap "widget-config" is there twice, in manifests/configmap-more.yaml too: ` +
				`the runtime Helm applies one over the other` + boxcutter + "configuration"},
		"equal files": {"manifests/configmap-more.yaml", bundles["widget"]["manifests/configmap-widget-config.yaml"],
			"warning", "installable", `ConfigMap "widget-config" is there twice, in manifests/configmap-more.yaml too: ` +
				"the runtime Helm applies one of them" + boxcutter + "configuration"},
		"two definitions": {"manifests/definition.yaml", bundles["widget"]["manifests/widgets.widgets.example.com.crd.yaml"],
			"", "refused", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files, _ := clitest.ClusterBundles(t)
			files["widget"][c.file] = c.text
			for name, text := range files["widget"] {
				clitest.WriteFile(t, filepath.Join(dir, "bundle", filepath.FromSlash(name)), text)
			}
			clitest.WriteFile(t, filepath.Join(dir, "catalog", "catalog.json"),
				clitest.CatalogOf(t, "widget", "example.com/a:v1", files["widget"], true))
			for _, subject := range []string{"bundle", "catalog"} {
				r := checkReport(t, dir, subject)
				state, _, _ := r.of("widget")
				var found []string
				for _, f := range r.Findings {
					if f.Rule == "olmv1.object-twice" {
						found = append(found, f.Severity+": "+f.Message)
					}
				}
				want := c.want
				if subject == "catalog" {
					want = strings.Replace(want, ", in manifests/configmap-more.yaml too", "", 1) // a catalog has no files
				}
				if said := slices.ContainsFunc(found, func(f string) bool {
					return strings.HasPrefix(f, c.severity) && strings.Contains(f, want)
				}); state != c.state || said != (want != "") {
					t.Errorf("%s is %s: %q, want %s: %s", subject, state, found, c.severity, want)
				}
			}
			if c.want == "" {
				return
			}
			got := clitest.RunProgram(t, dir, "bindery", "bundle", "manifests", "bundle")
			if want := "there are several; Helm applies one over the other, Boxcutter refuses them"; got.Status != 0 || !strings.Contains(got.Stderr, want) {
				t.Errorf("%+v, want %s", got, want)
			}
		})
	}
}
