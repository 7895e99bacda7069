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

// Two accounts at one registry: one reads and one writes.
func TestTwoAccounts(t *testing.T) {
	r, dir := testregistry.New(t), t.TempDir()
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
	for _, line := range []string{"copy HOST/from/app:v1 docker://HOST/to/app:v1", "mirror run -c set.yaml --workspace ws docker://HOST/to"} {
		args := append(strings.Fields(strings.ReplaceAll(line, "HOST", r.Host())), "--use-http", "--no-cache")
		if got := clitest.Finish(t, clitest.Command(dir, "bindery", append(args, "--authfile", "reader.json")...)); got.Status == 0 {
			t.Errorf("%s: one account does both: %+v", line, got)
		}
		for _, files := range [][]string{{"--src-authfile", "reader.json", "--dest-authfile", "writer.json"},
			{"--authfile", "reader.json", "--dest-authfile", "writer.json"}} {
			if got := clitest.Finish(t, clitest.Command(dir, "bindery", append(args, files...)...)); got.Status != 0 {
				t.Errorf("%s: %+v", line, got)
			}
		}
	}
}
