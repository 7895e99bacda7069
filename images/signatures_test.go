package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/supplytest"
	"github.com/operator-bindery/bindery/internal/testregistry"
)

// Policies with keys take the images that were signed with them, and no others.
func TestSignedImages(t *testing.T) {
	vectors := supplytest.Vectors(t)
	dir, home := supplytest.Policies(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".config/containers/registries.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, ".config/containers/registries.d/default.yaml"),
		"default-docker:\n  use-sigstore-attachments: true\n")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	for _, c := range []struct {
		vector, policy, refused string // refused is empty for what is taken
	}{
		{"sig-cimage-p256", "p256-default", ""},
		{"sig-cimage-p256", "p256-repo", ""},
		{"sig-cimage-p256", "p256-other-default", "invalid signature"},
		{"sig-cimage-rsa2048", "rsa2048-default", ""},
		{"sig-cimage-rsa2048", "p256-default", "signature"},
		{"sig-cimage-ed25519", "ed25519-default", ""},
		{"sig-cimage-two-signers", "p256-default", ""},
		{"sig-cimage-two-signers", "p256-other-default", ""},
		{"sig-bad-then-good", "p256-default", ""},
		{"sig-min-optional-null", "p256-default", ""},
		{"sig-pki-valid", "pki", ""},
		{"sig-pki-valid", "pki-other", "Required email"},
		{"sig-ed25519ph", "ed25519-default", "failed to verify signature"},
		{"cosign-sig-p256", "p256-default", "is not accepted"},
		{"cosign-sig-p256", "p256-repo", ""},
		{"unsigned", "p256-default", "A signature was required"},
		{"neg-pki-expired", "pki", "certificate has expired"},
		{"neg-sig-annotation-missing", "p256-default", "missing dev.cosignproject.cosign/signature"},
		{"neg-sig-duplicate-keys", "p256-default", "Duplicate key"},
		{"neg-sig-other-digest", "p256-default", "does not match"},
		{"neg-sig-other-key", "p256-default", "invalid signature"},
		{"neg-sig-other-repository", "p256-default", "is not accepted"},
		{"neg-sig-other-repository", "p256-repo", "is not accepted"},
		{"neg-sig-rsa-sha512", "rsa2048-default", "verification error"},
		{"neg-sig-tampered-payload", "p256-default", "invalid signature"},
		{"neg-sig-type-atomic", "p256-default", "Unrecognized signature type"},
		{"neg-sig-wrong-layer-type", "p256-default", "A signature was required"},
	} {
		t.Run(c.vector+" "+c.policy, func(t *testing.T) {
			files := vectors[c.vector]
			if files == nil {
				t.Fatal("there is no such image")
			}
			reg := testregistry.New(t)
			reg.AddLayout(t, files)
			conf := filepath.Join(t.TempDir(), "registries.conf")
			write(t, conf,
				fmt.Sprintf(
					"[[registry]]\nprefix = \"registry.example.com/acme/catalog\"\nlocation = "+
						"\"%s/layout\"\ninsecure = true\n", reg.Host()))
			client := quick(t,
				ClientOptions{Registry: Registry{RegistriesConf: conf},
					PolicyFile: filepath.Join(dir, c.policy+".json")})
			img, err := client.Open(t.Context(), "registry.example.com/acme/catalog:v1")
			if err == nil {
				err = img.Close()
			}
			if c.refused == "" && err != nil ||
				c.refused != "" && (!errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
