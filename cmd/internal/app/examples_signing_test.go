package app_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// signingFiles writes what examples of signing name: a key pair, a predicate, and a policy with the key.
func signingFiles(t *testing.T, keys, dir, line string) {
	t.Helper()
	clitest.WriteFile(t, filepath.Join(dir, "passphrase.txt"), "open sesame\n")
	if strings.Contains(line, "release.") || strings.Contains(line, "--signatures") {
		for _, name := range []string{"release.key", "release.pub"} {
			clitest.CopyFile(t, filepath.Join(keys, name), filepath.Join(dir, name))
		}
	}
	clitest.WriteFile(t, filepath.Join(dir, "sbom.json"), "{}")
	clitest.WriteFile(t, filepath.Join(dir, "tested.json"), "{}")
	clitest.WriteFile(t, filepath.Join(dir, "policy.json"), `{"default": [{"type": "reject"}], "transports": {"docker": `+
		`{"registry.example.com": [{"type": "sigstoreSigned", "keyPath": `+
		strconv.Quote(filepath.Join(dir, "release.pub"))+`}]}}}`)
	if err := os.Mkdir(filepath.Join(dir, "registries.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "registries.d", "any.yaml"), "default-docker:\n  use-sigstore-attachments: true\n")
}

// exampleKeys returns a directory with the key pair release.key and release.pub.
func exampleKeys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "passphrase.txt"), "open sesame\n")
	clitest.Done(t, dir, "bindery", "keys", "generate", "--name", "release", "--sign-passphrase-file", "passphrase.txt")
	return dir
}

// signExample signs and attests an image for the examples of verifying.
func signExample(t *testing.T, dir, image string) {
	t.Helper()
	clitest.Done(t, dir, "bindery", "sign", image, "--use-http", "--sign-key", "release.key", "--sign-passphrase-file",
		"passphrase.txt", "--sign-identity", "registry.example.com/acme/catalog:v1")
	clitest.Done(t, dir, "bindery", "attest", image, "--use-http", "--sign-key", "release.key", "--sign-passphrase-file",
		"passphrase.txt", "--type", "cyclonedx", "--predicate", "sbom.json")
}
