package mirror_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Two accounts at one registry: one reads and one writes. What is missing is named by the flag of its end.
func TestTwoAccounts(t *testing.T) {
	r, dir := testregistry.New(t), t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "none.json"), "{}")
	r.AddImage(t, "from/app", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
	encoded := func(user string) string { return base64.StdEncoding.EncodeToString([]byte(user + ":secret")) }
	for _, user := range []string{"reader", "writer"} {
		clitest.WriteFile(t, filepath.Join(dir, user+".json"), fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, r.Host(), encoded(user)))
	}
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		user := "reader"
		if strings.Contains(q.URL.Path, "/to/") {
			user = "writer"
		}
		has := q.Header.Get("Authorization")
		if has == "Basic "+encoded(user) || q.URL.Path == "/v2/" && has != "" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	clitest.WriteFile(t, filepath.Join(dir, "set.yaml"), "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n"+
		"mirror:\n  additionalImages:\n  - name: "+r.Host()+"/from/app:v1\n")
	for _, line := range []string{"bindery copy HOST/from/app:v1 docker://HOST/to/app:v1 --use-http --no-cache",
		"bindery mirror run -c set.yaml --workspace ws docker://HOST/to --use-http --no-cache",
		"oc-mirror -c set.yaml --workspace file://oc docker://HOST/to --src-tls-verify=false --dest-tls-verify=false"} {
		args := strings.Fields(strings.ReplaceAll(line, "HOST", r.Host()))
		for _, c := range []struct{ files, lacks, hint string }{
			{"--authfile reader.json", "no writer", ""},
			{"--authfile none.json --dest-authfile writer.json", "no reader", "hint: provide credentials with --src-authfile FILE or "},
			{"--authfile none.json --src-authfile reader.json", "no writer", "hint: provide credentials with --dest-authfile FILE or "},
			{"--src-authfile reader.json --dest-authfile writer.json", "", ""},
			{"--authfile reader.json --dest-authfile writer.json", "", ""},
		} {
			got := clitest.Finish(t, clitest.Command(dir, args[0], append(args[1:], strings.Fields(c.files)...)...))
			if (got.Status == 0) != (c.lacks == "") || !strings.Contains(got.Stderr, c.hint) {
				t.Errorf("%s %s: %s, want %q: %+v", line, c.files, c.lacks, c.hint, got)
			}
		}
	}
}
