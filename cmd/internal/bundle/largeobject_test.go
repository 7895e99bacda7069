package bundle_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// What is wrong in a huge object costs no memory for each of its values: it is not validated, which is said.
func TestHugeObjectIsNotValidated(t *testing.T) {
	t.Parallel()
	bundles, _ := clitest.ClusterBundles(t)
	dir := t.TempDir()
	for name, text := range bundles["widget"] {
		clitest.WriteFile(t, filepath.Join(dir, "bundle", filepath.FromSlash(name)), text)
	}
	role := filepath.Join(dir, "bundle", "manifests", "role.json")
	for rules, want := range map[int]string{
		1_000:   `error: ClusterRole.rbac.authorization.k8s.io "h" is invalid: rules[0].verbs: Required value`,
		300_000: `warning: ClusterRole "h": the object is too large to be validated`,
	} {
		clitest.WriteFile(t, role, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"h"},"rules":[{}`+
			strings.Repeat(",{}", rules-1)+`]}`)
		var found []string
		for _, f := range checkReport(t, dir, "bundle").Findings {
			found = append(found, f.Severity+": "+f.Message)
		}
		if all := strings.Join(found, "\n"); !strings.Contains(all, want) {
			t.Errorf("%d rules: %.2000s, want %s", rules, all, want)
		}
	}
}
