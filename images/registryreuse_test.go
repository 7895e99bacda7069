package images

import (
	"net/http"
	"sync"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Answers that are not read, those to the ping and to a request without credentials, cost no connection.
func TestConnectionIsUsedAgain(t *testing.T) {
	reg := testregistry.New(t)
	reg.AddImage(t, "a/b", "v1", testregistry.Image{})
	var mu sync.Mutex
	connections, requests, refused := map[string]bool{}, 0, false
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		connections[r.RemoteAddr] = true
		requests++
		if r.URL.Path == "/v2/" {
			_, _ = w.Write([]byte("{}"))
			return true
		}
		if !refused {
			refused = true
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"errors":[{"code":"UNAUTHORIZED"}]}`))
			return true
		}
		return false
	})
	c, err := NewClient(ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: insecure()}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	img, err := c.Image(t.Context(), reg.Host()+"/a/b:v1", v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if len(connections) != 1 || requests < 4 {
		t.Errorf("%d connections for %d requests, want one for at least 4", len(connections), requests)
	}
}
