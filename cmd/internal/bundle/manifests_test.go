package bundle_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// An image renders to what its directory does, in each format.
func TestBundleManifests(t *testing.T) {
	dir := clitest.ManifestsDir(t)
	clitest.Done(t, dir, "bindery", "build", "bundle", "bundle", "-t", "acme/etcd:v1", "--output", "oci:etcd.oci:v1")
	render := func(ref string, more ...string) string {
		return clitest.Done(t, dir, "bindery",
			append([]string{"bundle", "manifests", ref, "--watch-namespace", "w"}, more...)...)
	}
	for _, format := range []string{"yaml", "json", "ndjson"} {
		if a, b := render("bundle", "-o", format), render("oci:etcd.oci:v1", "-o", format); a != b || a == "" {
			t.Errorf("%s: the image gives\n%s\nthe directory\n%s", format, b, a)
		}
	}
	lines := strings.Split(strings.TrimSpace(render("bundle", "-o", "ndjson")), "\n")
	var list struct {
		Kind  string
		Items []json.RawMessage
	}
	if err := json.Unmarshal([]byte(render("bundle", "-o", "json")), &list); err != nil || list.Kind != "List" ||
		len(list.Items) != len(lines) || len(lines) != 7 {
		t.Errorf("%v, %s of %d items, %d lines", err, list.Kind, len(list.Items), len(lines))
	}
	text := render("bundle", "--phases", "--create-namespace", "--olm-labels", "my", "--install-namespace", "ns")
	for _, part := range []string{"# phase 1 of 6: namespaces\n", "kind: Namespace\n",
		"olm.operatorframework.io/owner-name: my\n", "namespace: ns\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
