package app_test

import (
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A registry that refuses PATCH gets each blob in one PUT, which is verified as any other. It is asked once.
func TestPushToARegistryWithoutPatch(t *testing.T) {
	content := make([]byte, 4<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(content)
	source := testregistry.New(t)
	top := source.AddImage(t, "acme/tool", "v1", testregistry.Image{Layers: []map[string]string{
		{"a": string(content[:2<<20])}, {"b": string(content[2<<20:])}, {"c": "small"}}})
	source.AddImage(t, "acme/catalog", "v1", clitest.OpmFor("amd64"))
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "isc.yaml"), "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\n"+
		"mirror:\n  additionalImages:\n  - name: "+source.Host()+"/acme/tool:v1\n")
	clitest.WriteFile(t, filepath.Join(dir, "cat", "catalog.json"), clitest.PackageText("etcd"))
	for _, status := range []int{http.StatusMethodNotAllowed, http.StatusNotImplemented} {
		for _, read := range []bool{false, true} { // whether the body is read before it is refused
			for line, to := range map[string]string{
				"copy SOURCE/acme/tool:v1 TARGET/a/tool:v1":                                            "a/tool@" + top.String(),
				"mirror run -c isc.yaml docker://TARGET/a --workspace ws":                              "a/acme/tool@" + top.String(),
				"build catalog cat -t TARGET/a/cat:v1 --base SOURCE/acme/tool:v1 --server none --push": "a/cat:v1",
			} {
				target := testregistry.New(t)
				target.Separate(false)
				target.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
					if q.Method != http.MethodPatch {
						return false
					}
					if read {
						_, _ = http.MaxBytesReader(w, q.Body, 8<<20).Read(make([]byte, 1<<20))
					}
					w.WriteHeader(status)
					return true
				})
				full := strings.NewReplacer("SOURCE", source.Host(), "TARGET", target.Host()).Replace(line)
				got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(full), "--use-http", "--no-cache", "--retries", "0")...)
				repository, name, _ := strings.Cut(to, "@")
				if name == "" {
					repository, name, _ = strings.Cut(to, ":")
				}
				if got.Status != 0 || target.Manifest(repository, name) == nil {
					t.Errorf("%d, body read %v: %s: %+v", status, read, line, got)
				}
				// Two large layers may be on their way before the first answer.
				if n := target.Count("PATCH "); n < 1 || n > 2 {
					t.Errorf("%d: %s: %d PATCH: %q", status, line, n, target.Requests())
				}
			}
		}
	}
	// What the source sends is compared with its digest here, too.
	target := testregistry.New(t)
	target.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method == http.MethodPatch {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		return false
	})
	source.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		_, d, ok := strings.Cut(q.URL.Path, "/blobs/")
		if !ok || q.Method != http.MethodGet || digest.Digest(d).Validate() != nil {
			return false
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(content)
		return true
	})
	got := clitest.RunProgram(t, dir, "bindery", "copy", source.Host()+"/acme/tool:v1", target.Host()+"/a/tool:v1", "--use-http",
		"--no-cache", "--retries", "0")
	if got.Status != 1 || target.Manifest("a/tool", "v1") != nil {
		t.Errorf("%+v", got)
	}
}
