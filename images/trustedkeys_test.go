package images

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// publicKeys reads keys of the vectors.
func publicKeys(t *testing.T, names ...string) []signature.PublicKey {
	t.Helper()
	dir := supplytest.Policies(t)
	var keys []signature.PublicKey
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name+".pub"))
		if err != nil {
			t.Fatal(err)
		}
		of, err := signature.ParsePublicKeys(text)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, of...)
	}
	return keys
}

// Trusted keys accept both forms of signatures, from registries and layouts, whatever registries.d says.
func TestTrustedKeys(t *testing.T) {
	p256 := []string{"p256"}
	for _, c := range []struct {
		vector   string
		keys     []string
		accepted bool
	}{
		{"sig-cimage-p256", p256, true},
		{"sig-cimage-p256", []string{"rsa2048", "p256"}, true},
		{"sig-cimage-p256", []string{"p256-other"}, false},
		{"sig-cimage-rsa2048", []string{"rsa2048"}, true},
		{"sig-cimage-ed25519", []string{"ed25519"}, true},
		{"sig-cimage-index-all", p256, true},
		{"sig-index-only-list", p256, true},
		{"sig-bad-then-good", p256, true},
		{"unsigned", p256, false},
		{"multi-unsigned", p256, false},
		{"neg-sig-other-digest", p256, false},
		{"neg-sig-other-key", p256, false},
		{"neg-sig-duplicate-keys", p256, false},
		{"neg-sig-tampered-payload", p256, false},
		{"neg-sig-type-atomic", p256, false},
		{"neg-sig-wrong-layer-type", p256, false},
		{"bundle-min-p256", p256, true},
		{"bundle-rsa2048", []string{"rsa2048"}, true},
		{"bundle-fallback-tag", p256, true},
		{"bundle-attested-all", p256, true},
		{"cosign-bundle-p256", p256, true},
		{"referrers-tag-self-and-loop", p256, true},
		{"cosign-attest-bundles", p256, false},
		{"att-min-spdx", p256, false},
		{"neg-bundle-only-sbom-attested", p256, false},
		{"neg-bundle-other-digest", p256, false},
		{"neg-bundle-other-key", p256, false},
		{"neg-bundle-payloadtype-swapped", p256, false},
		{"neg-bundle-signed-without-pae", p256, false},
		{"neg-bundle-tampered", p256, false},
		{"neg-bundle-two-signatures", p256, false},
		{"neg-referrers-tag-not-index", p256, false},
	} {
		t.Run(c.vector+" "+strings.Join(c.keys, ","), func(t *testing.T) {
			repository, tag := signedVector{vector: c.vector}.name()
			reg, access := vectorRegistry(t, c.vector, repository)
			reg.SetReferrers(testregistry.Referrers{API: !strings.Contains(c.vector, "fallback-tag")})
			access.RegistriesDir = t.TempDir()
			anything := filepath.Join(t.TempDir(), "policy.json")
			write(t, anything, `{"default":[{"type":"insecureAcceptAnything"}]}`)
			o := ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: anything, TrustedKeys: publicKeys(t, c.keys...)}
			for _, name := range []string{repository + ":" + tag, "oci:" + supplytest.Unpack(t, c.vector) + ":" + tag} {
				for what, err := range ways(t, o, name) {
					if c.accepted && err != nil || !c.accepted && !errors.Is(err, trust.ErrPolicy) {
						t.Errorf("%.4s %s: got %v", name, what, err)
					}
				}
			}
		})
	}
}

// An attached signature must be for the name that was asked for.
func TestTrustedKeysAndNames(t *testing.T) {
	for _, c := range []struct {
		vector, name string
		accepted     bool
	}{
		{"sig-cimage-p256", signedImage, true},
		{"sig-cimage-p256",
			supplytest.Repository + "@sha256:00a8352e405c0289f552a59e94682534c793ffa121cd93de0d4c13b5de3f99a8", true},
		{"neg-sig-other-repository", signedImage, false},
		{"sig-cimage-p256", "registry.example.com/acme/other:v1", false},
	} {
		repository, _, _ := strings.Cut(c.name, ":v1")
		repository, _, _ = strings.Cut(repository, "@")
		_, access := vectorRegistry(t, c.vector, repository)
		err := openOnce(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: access}, TrustedKeys: publicKeys(t, "p256")}),
			c.name)
		if c.accepted && err != nil || !c.accepted && !errors.Is(err, trust.ErrPolicy) {
			t.Errorf("%s %s: got %v", c.vector, c.name, err)
		}
	}
}

// What a policy rejects stays rejected, what cannot have a signature is refused, and a failure is no answer.
func TestTrustedKeysAreNotAll(t *testing.T) {
	reg, access := vectorRegistry(t, "sig-cimage-p256", supplytest.Repository)
	reject := filepath.Join(t.TempDir(), "policy.json")
	write(t, reject, `{"default":[{"type":"reject"}]}`)
	keys := publicKeys(t, "p256")
	err := openOnce(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: reject, TrustedKeys: keys}),
		signedImage)
	if !errors.Is(err, trust.ErrPolicy) || !strings.Contains(err.Error(), reject) {
		t.Errorf("a policy that rejects: got %v", err)
	}
	for _, to := range []string{"dir:", "docker-archive:"} {
		name := to + filepath.Join(t.TempDir(), "image")
		mustCopy(t, simple(t, "x"), name)
		if err := openOnce(t.Context(), quick(t, ClientOptions{TrustedKeys: keys}), name); !errors.Is(err, trust.ErrPolicy) {
			t.Errorf("%s: got %v", to, err)
		}
	}
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		fail := strings.HasSuffix(r.URL.Path, ".sig")
		if fail {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return fail
	})
	err = openOnce(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: access}, TrustedKeys: keys}), signedImage)
	if !errors.Is(err, ErrRegistry) || errors.Is(err, trust.ErrPolicy) {
		t.Errorf("a registry that fails: got %v", err)
	}
}
