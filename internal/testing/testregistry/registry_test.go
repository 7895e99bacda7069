package testregistry_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

func get(t *testing.T, url string) []byte {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, answer.Status, err)
	}
	return text
}

func TestRecordedImagesAreServed(t *testing.T) {
	r := testregistry.Recorded(t)
	base := "http://" + r.Host() + "/v2/community/etcd/"
	text := get(t, base+"manifests/v0.9.4")
	if d := digest.FromBytes(text); d != "sha256:20764874ca1b2665ae825cd2e3bfbf0c1e242ec0e116e9f6a2f56aa5b5ba677a" {
		t.Errorf("manifest %s", d)
	}
	var m struct {
		Layers []struct{ Digest digest.Digest }
	}
	if err := json.Unmarshal(text, &m); err != nil || len(m.Layers) == 0 {
		t.Fatalf("%s: %v", text, err)
	}
	for _, l := range m.Layers {
		if got := digest.FromBytes(get(t, base+"blobs/"+l.Digest.String())); got != l.Digest {
			t.Errorf("blob %s instead of %s", got, l.Digest)
		}
	}
	if n := r.Count("GET /v2/community/etcd/blobs/"); n != len(m.Layers) {
		t.Errorf("%d requests of blobs", n)
	}
}
