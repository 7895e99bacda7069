package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// signingFiles writes what examples of signing name: a key pair, a predicate, and a policy with the key.
func signingFiles(t *testing.T, dir, line string) {
	t.Helper()
	writeFile(t, filepath.Join(dir, "passphrase.txt"), "open sesame\n")
	if strings.Contains(line, "release.") || strings.Contains(line, "--signatures") {
		done(t, dir, "bindery", "keys", "generate", "--name", "release", "--sign-passphrase-file",
			filepath.Join(dir, "passphrase.txt"))
	}
	writeFile(t, filepath.Join(dir, "sbom.json"), "{}")
	writeFile(t, filepath.Join(dir, "tested.json"), "{}")
	writeFile(t, filepath.Join(dir, "policy.json"), `{"default": [{"type": "reject"}], "transports": {"docker": `+
		`{"registry.example.com": [{"type": "sigstoreSigned", "keyPath": `+
		strconv.Quote(filepath.Join(dir, "release.pub"))+`}]}}}`)
	if err := os.Mkdir(filepath.Join(dir, "registries.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "registries.d", "any.yaml"), "default-docker:\n  use-sigstore-attachments: true\n")
}

// signExample signs and attests an image for the examples of verifying.
func signExample(t *testing.T, dir, image string) {
	t.Helper()
	done(t, dir, "bindery", "sign", image, "--use-http", "--sign-key", "release.key", "--sign-passphrase-file",
		"passphrase.txt", "--sign-identity", "registry.example.com/acme/catalog:v1")
	done(t, dir, "bindery", "attest", image, "--use-http", "--sign-key", "release.key", "--sign-passphrase-file",
		"passphrase.txt", "--type", "cyclonedx", "--predicate", "sbom.json")
}
