package images

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A connection that breaks behind the last byte of a blob has lost nothing: there is no rest to ask for.
func TestBreakBehindTheLastByte(t *testing.T) {
	f, text := large(t, 300<<10)
	layer := layerOf(t, f, 0).Digest
	content := f.blobs[layer]
	reg := testregistry.New(t)
	put(reg, "a/b", "v1", f)
	reg.Interfere(on(layer.String(), 0, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		_, _ = w.Write(content)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	got, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Retries: 2}}), reg.Host()+"/a/b:v1")
	if err != nil || got != text {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if n := reg.Count("GET /v2/a/b/blobs/" + layer.String()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// Closing again does nothing, and what is closed opens nothing more.
func TestClosedClient(t *testing.T) {
	reg := testregistry.New(t)
	put(reg, "a/b", "v1", simple(t, "x"))
	policy := filepath.Join(t.TempDir(), "policy.json")
	write(t, policy, `{"default":[{"type":"insecureAcceptAnything"}]}`)
	c := quick(t, ClientOptions{Options: registries.Options{Registry: insecure()}, PolicyFile: policy})
	if _, err := read(t.Context(), c, reg.Host()+"/a/b:v1"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if _, err := c.Image(t.Context(), reg.Host()+"/a/b:v1", v1.Platform{}); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}
