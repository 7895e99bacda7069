package images

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/image"
	library "go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// signer returns a signing attachment with a key of the vectors.
func signer(t *testing.T, name string, o signature.SignOptions) *signature.Signing {
	t.Helper()
	key, err := signature.ParseKey(supplytest.Vectors(t)["keys"][name+".pkcs8.pem"], nil, true)
	if err != nil {
		t.Fatal(err)
	}
	o.Keys = func(context.Context) ([]signature.Signer, error) { return []signature.Signer{key}, nil }
	return signature.NewSigning(o)
}

// The containers library accepts what is signed here, under a policy as clusters have it: the index and each image, for
// every kind of key.
func TestLibraryAcceptsSignatures(t *testing.T) {
	registriesDir := t.TempDir()
	write(t, filepath.Join(registriesDir, "any.yaml"), "default-docker:\n  use-sigstore-attachments: true\n")
	keys := supplytest.Policies(t)
	for _, key := range []string{"p256", "p384", "rsa2048", "ed25519"} {
		t.Run(key, func(t *testing.T) {
			reg := testregistry.New(t)
			reg.AddIndex(t, "acme/catalog", "v1", nil, []testregistry.Image{
				{Layers: []map[string]string{{"a": "amd"}}},
				{Platform: v1.Platform{OS: "linux", Architecture: "arm64"}, Layers: []map[string]string{{"a": "arm"}}}})
			name := reg.Host() + "/acme/catalog:v1"
			plain := true
			o := CopyOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &plain, PlainHTTP: true}}}
			w, err := o.OpenWriter(t.Context(), transport.Destination{Transport: transport.Docker, Name: name})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Discard()
			if err := signer(t, key, signature.SignOptions{}).Attach(t.Context(), w, w.Image); err != nil {
				t.Fatal(err)
			}
			if err := w.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(w.Image.Instances) != 2 {
				t.Fatalf("%d instances", len(w.Image.Instances))
			}
			policyText, err := json.Marshal(map[string]any{"default": []any{map[string]any{"type": "sigstoreSigned",
				"keyPath": filepath.Join(keys, key+".pub")}}})
			if err != nil {
				t.Fatal(err)
			}
			policy, err := library.NewPolicyFromBytes(policyText)
			if err != nil {
				t.Fatal(err)
			}
			pc, err := library.NewPolicyContext(policy)
			if err != nil {
				t.Fatal(err)
			}
			ref, err := docker.ParseReference("//" + name)
			if err != nil {
				t.Fatal(err)
			}
			src, err := ref.NewImageSource(t.Context(), &types.SystemContext{RegistriesDirPath: registriesDir,
				DockerInsecureSkipTLSVerify: types.OptionalBoolTrue})
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			if ok, err := pc.IsRunningImageAllowed(t.Context(), image.UnparsedInstance(src, nil)); !ok || err != nil {
				t.Errorf("the index: %v", err)
			}
			for _, i := range w.Image.Instances {
				d := i.Digest
				if ok, err := pc.IsRunningImageAllowed(t.Context(), image.UnparsedInstance(src, &d)); !ok ||
					err != nil {
					t.Errorf("%s: %v", d, err)
				}
			}
		})
	}
}

// A copy writes signatures before the tag moves: a client that pulls the tag finds them.
func TestSignaturesComeBeforeTheTag(t *testing.T) {
	reg := testregistry.New(t)
	src := testregistry.Image{Layers: []map[string]string{{"a": "b"}}}
	dir := filepath.Join(t.TempDir(), "layout")
	src.WriteLayout(t, dir, "v1")
	from := opened(t, quick(t, ClientOptions{NoPolicy: true}), "oci:"+dir+":v1")
	plain := true
	o := CopyOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &plain, PlainHTTP: true}},
		Attachments: []store.Attachment{signer(t, "p256", signature.SignOptions{})}}
	dest := transport.Destination{Transport: transport.Docker, Name: reg.Host() + "/acme/catalog:v1"}
	if _, err := copyOf(t.Context(), of(t, from), []transport.Destination{dest}, o); err != nil {
		t.Fatal(err)
	}
	tag, sig, listed := -1, -1, -1
	for n, r := range reg.Requests() {
		switch {
		case matches(r, "PUT /v2/acme/catalog/manifests/v1"):
			tag = n
		case matches(r, "PUT /v2/acme/catalog/manifests/sha256-*.sig"):
			sig = n
		case matches(r, "PUT /v2/acme/catalog/manifests/sha256-*"):
			listed = n
		}
	}
	if tag < 0 || sig < 0 || listed < 0 || tag < sig || tag < listed {
		t.Errorf("tag %d, signature %d, list %d", tag, sig, listed)
	}
}

func matches(request, pattern string) bool {
	ok, err := filepath.Match(filepath.ToSlash(pattern), request)
	return err == nil && ok
}

// A registry that does not see a blob while another client writes the same one gets the manifest again.
func TestSignatureWhoseBlobIsNotSeen(t *testing.T) {
	reg := testregistry.New(t)
	reg.AddImage(t, "acme/catalog", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
	var mu sync.Mutex
	refused := map[string]int{}
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") || refused[r.URL.Path] == 2 {
			return false
		}
		refused[r.URL.Path]++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown to registry"}]}`))
		return true
	})
	plain := true
	o := CopyOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &plain, PlainHTTP: true}}}
	w, err := o.OpenWriter(t.Context(), transport.Destination{Transport: transport.Docker,
		Name: reg.Host() + "/acme/catalog:v1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	if err := signer(t, "p256", signature.SignOptions{}).Attach(t.Context(), w, w.Image); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys, err := signature.ParsePublicKeys(supplytest.Vectors(t)["keys"]["p256.pub"])
	if err != nil {
		t.Fatal(err)
	}
	report, err := signature.VerifyOptions{Keys: keys}.Verify(t.Context(), w, w.Image)
	if err != nil || !report.Verified || len(report.Subjects[0].Findings) != 2 || len(refused) != 3 {
		t.Errorf("%v %+v, refused %v", err, report, refused)
	}
}
