//go:build hostile

package hostile

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Indexes that contain themselves, far too many entries, an image under two names, and a registry that sends other
// bytes for a layer than the one it announced.
func TestHostileReferences(t *testing.T) {
	t.Parallel()
	const indexType = "application/vnd.oci.image.index.v1+json"
	said := map[string]string{"kind": "packages", "packages": "foo"}
	index := func(t *testing.T, r *testregistry.Registry, tag string, of ...digest.Digest) digest.Digest {
		var all []any
		for n, d := range of {
			all = append(all,
				map[string]any{"mediaType": indexType, "digest": d, "size": len(r.Manifest("acme/foo", d.String())),
					"platform": map[string]any{"os": "linux", "architecture": fmt.Sprintf("a%d", n)}})
		}
		all[0].(map[string]any)["platform"] = map[string]any{"os": "linux", "architecture": "amd64"}
		text, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": all})
		check(t, err)
		return r.AddManifest("acme/foo", tag, indexType, text)
	}
	image := func(t *testing.T, r *testregistry.Registry) digest.Digest {
		return catalogPicture(t, said, catalogFiles()...).add(t, r, "acme/foo", "v1")
	}
	for _, c := range []struct {
		name  string
		make  func(t *testing.T, r *testregistry.Registry) string
		class int
		text  string
		// whole means that only reading the layers detects it.
		whole bool
	}{
		{"indexes 50 deep", func(t *testing.T, r *testregistry.Registry) string {
			d := image(t, r)
			for range 50 {
				d = index(t, r, "v1", d)
			}
			return ""
		}, limit, "deep|indexes", false},
		{"an index of itself", func(t *testing.T, r *testregistry.Registry) string {
			d := index(t, r, "v1", image(t, r))
			text := []byte(strings.ReplaceAll(string(r.Manifest("acme/foo", d.String())), `"a0"`, `"amd64"`))
			// Every request by digest returns the index again.
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if !strings.Contains(q.URL.Path, "/manifests/sha256:") {
					return false
				}
				w.Header().Set("Content-Type", indexType)
				_, _ = w.Write(text)
				return true
			})
			return ""
		}, integrity, "digest|size", false},
		{"10,000 entries", func(t *testing.T, r *testregistry.Registry) string {
			index(t, r, "v1", sameDigests(10_000, image(t, r))...)
			return ""
		}, limit, "entries", false},
		{"the same image twice", func(t *testing.T, r *testregistry.Registry) string {
			image(t, r)
			return fmt.Sprintf("- {name: bar, image: %q}\n", r.Host()+"/acme/foo:v1")
		}, input, "foo", false},
		{"other bytes", func(t *testing.T, r *testregistry.Registry) string {
			image(t, r)
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if !strings.Contains(q.URL.Path, "/blobs/") || strings.Contains(q.Header.Get("Accept"), "config") {
					return false
				}
				if q.Method != http.MethodGet || r.Count("GET /v2/acme/foo/blobs/") < 2 {
					return false
				}
				_, _ = w.Write([]byte(strings.Repeat("x", 300)))
				return true
			})
			return ""
		}, integrity, "digest|size|longer|bytes", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := testregistry.New(t)
			more := c.make(t, r)
			b := newBox(t)
			ref := r.Host() + "/acme/foo:v1"
			b.write("compose.yaml", fmt.Sprintf("references:\n- {name: foo, image: %q}\n%s", ref, more))
			b.write("cat/foo/catalog.yaml", healthy)
			if more == "" && !c.whole {
				b.refused(c.class, c.text, "inspect", ref, "--use-http", "--retries", "0")
				b.refused(c.class, c.text, "verify", ref, "--use-http", "--retries", "0")
				b.refused(c.class, c.text, "build", "catalog", "cat", "-t", "example.com/a:v1", "--previous", ref,
					"--server", "none", "--use-http", "--retries", "0", "--output", "oci:out:v1")
			}
			b.refused(c.class, c.text, "build", "compose", "compose.yaml", "-t", "example.com/a:v1", "--server", "none",
				"--cache", "none", "--use-http", "--retries", "0", "--output", "oci:out:v1")
		})
	}
}

// sameDigests returns n times the same digest.
func sameDigests(n int, d digest.Digest) (out []digest.Digest) {
	for range n {
		out = append(out, d)
	}
	return out
}
