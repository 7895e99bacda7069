package app_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A registry that does not allow to look whether there are signatures keeps no image from being copied, mirrored or
// shown: the same warning is in all of these. A registry that fails is another matter.
func TestSignaturesThatMustNotBeLookedFor(t *testing.T) {
	target := testregistry.New(t)
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError} {
		source := testregistry.New(t)
		source.AddImage(t, "acme/tool", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
		for what, api := range map[string]bool{"tags": true, "tags and no list": false} {
			source.SetReferrers(testregistry.Referrers{API: api})
			source.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if strings.Contains(q.URL.Path, "/manifests/sha256-") || strings.HasSuffix(q.URL.Path, "/tags/list") {
					w.WriteHeader(status)
					return true
				}
				return false
			})
			dir := t.TempDir()
			clitest.WriteFile(t, filepath.Join(dir, "isc.yaml"), "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\n"+
				"mirror:\n  additionalImages:\n  - name: "+source.Host()+"/acme/tool:v1\n")
			to := fmt.Sprintf("docker://%s/%d-%v", target.Host(), status, api)
			for _, line := range []string{"copy SOURCE/acme/tool:v1 " + to + "/copied:v1", "copy SOURCE/acme/tool:v1 oci:copied",
				"mirror run -c isc.yaml " + to + "/mirrored --workspace ws", "mirror run -c isc.yaml file://archive",
				"tree SOURCE/acme/tool:v1"} {
				got := clitest.RunProgram(t, dir, "bindery", strings.Fields(strings.Replace(line, "SOURCE", source.Host(), 1)+
					" --use-http --retries 0")...)
				name := fmt.Sprintf("%d for the %s: %s", status, what, line)
				if status == http.StatusInternalServerError {
					if strings.HasPrefix(line, "copy") && got.Status == 0 {
						t.Errorf("%s: %+v", name, got)
					}
					continue
				}
				if text := fmt.Sprintf("status %d", status); got.Status != 0 || !strings.Contains(got.Stdout+got.Stderr, text) ||
					!strings.HasPrefix(line, "tree") && !strings.Contains(got.Stderr, "not all signatures could be read") {
					t.Errorf("%s: %+v", name, got)
				}
			}
		}
	}
}
