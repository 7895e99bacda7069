package registry_test

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	//lint:ignore SA1019 the containers library verifies GPG signatures with it, where it is built without C code
	"golang.org/x/crypto/openpgp" //nolint:staticcheck
	//lint:ignore SA1019 the same
	"golang.org/x/crypto/openpgp/packet" //nolint:staticcheck

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// gpgKey is a key for signatures of GPG.
type gpgKey struct{ entity *openpgp.Entity }

func newGPGKey(t *testing.T) gpgKey {
	t.Helper()
	e, err := openpgp.NewEntity("Test", "", "test@example.com", &packet.Config{DefaultHash: crypto.SHA256})
	if err != nil {
		t.Fatal(err)
	}
	return gpgKey{e}
}

// writePublic writes the public key to a file.
func (k gpgKey) writePublic(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := k.entity.SerializePrivate(&bytes.Buffer{}, nil); err != nil { // it signs the user's name
		t.Fatal(err)
	}
	if err := k.entity.Serialize(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.gpg")
	write(t, file, b.String())
	return file
}

// sign returns a signature of an image under a name.
func (k gpgKey) sign(t *testing.T, name, digest string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := openpgp.Sign(&b, k.entity, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(w,
		`{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},`+
			`"type":"atomic container signature"},"optional":{}}`, name, digest); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Signatures of GPG are read from a web server and from files.
func TestLookasideSignatures(t *testing.T) {
	key, other := newGPGKey(t), newGPGKey(t)
	policy := filepath.Join(t.TempDir(), "policy.json")
	write(t, policy, fmt.Sprintf(`{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":%q}]}`,
		key.writePublic(t)))
	reg := testregistry.New(t)
	top := reg.AddImage(t, "acme/catalog", "v1", testregistry.Image{}).String()
	name := reg.Host() + "/acme/catalog:v1"
	good := key.sign(t, name, top)
	for what, c := range map[string]struct {
		signatures [][]byte
		status     int // of the first
		want       string
		class      error
	}{
		"signed":             {[][]byte{good}, 200, "", nil},
		"the second is good": {[][]byte{other.sign(t, name, top), good}, 200, "", nil},
		"another key":        {[][]byte{other.sign(t, name, top)}, 200, "", trust.ErrPolicy},
		"another name": {[][]byte{key.sign(t, reg.Host()+"/evil/catalog:v1", top)}, 200, "is not accepted",
			trust.ErrPolicy},
		"another digest": {[][]byte{key.sign(t, name, "sha256:"+strings.Repeat("0", 64))}, 200, "does not match",
			trust.ErrPolicy},
		"none":                {nil, 200, "A signature was required", trust.ErrPolicy},
		"no signature at all": {[][]byte{[]byte("<html>")}, 200, "", trust.ErrPolicy},
		"a failure":           {[][]byte{good}, 503, "503", images.ErrRegistry},
		"forbidden":           {[][]byte{good}, 403, "403", images.ErrRegistry},
		"too large":           {[][]byte{make([]byte, 4<<20+1)}, 200, "", images.ErrLimit},
	} {
		t.Run(what, func(t *testing.T) {
			store := t.TempDir()
			at := filepath.Join(store, "acme", "catalog@"+strings.Replace(top, ":", "=", 1))
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			for i, text := range c.signatures {
				write(t, filepath.Join(at, fmt.Sprintf("signature-%d", i+1)), string(text))
			}
			files := http.FileServer(http.Dir(store))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.status != 200 {
					w.WriteHeader(c.status)
					return
				}
				if r.Header.Get("Authorization") != "" {
					t.Error("the server was shown credentials")
				}
				files.ServeHTTP(w, r)
			}))
			defer server.Close()
			for _, base := range []string{server.URL, "file://" + filepath.ToSlash(store)} {
				if c.status != 200 && strings.HasPrefix(base, "file:") {
					continue
				}
				dir := t.TempDir()
				write(t, filepath.Join(dir, "a.yaml"), "default-docker:\n  lookaside: "+base+"\n")
				access := insecure()
				access.RegistriesDir = dir
				err := openOnce(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: policy}), name)
				if c.class == nil && err != nil || c.class != nil && (!errors.Is(err, c.class) ||
					!strings.Contains(err.Error(), c.want)) {
					t.Errorf("%s: got %v", base, err)
				}
			}
		})
	}
}

// A server that has a signature under every number is not read for ever.
func TestLookasideWithoutEnd(t *testing.T) {
	key := newGPGKey(t)
	policy := filepath.Join(t.TempDir(), "policy.json")
	write(t, policy, fmt.Sprintf(`{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":%q}]}`,
		key.writePublic(t)))
	reg := testregistry.New(t)
	reg.AddImage(t, "acme/catalog", "v1", testregistry.Image{})
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte{0x90})
	}))
	defer server.Close()
	access := insecure()
	access.RegistriesDir = t.TempDir()
	write(t, filepath.Join(access.RegistriesDir, "a.yaml"), "default-docker:\n  lookaside: "+server.URL+"\n")
	err := openOnce(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: policy}),
		reg.Host()+"/acme/catalog:v1")
	if n := requests.Load(); !errors.Is(err, images.ErrLimit) || n > 200 {
		t.Errorf("got %v after %d requests", err, n)
	}
}
