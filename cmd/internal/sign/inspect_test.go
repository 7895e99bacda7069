package sign_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// inspected runs a command that prints a report, and decodes it.
func inspected(t *testing.T, dir string, status int, args ...string) *inspect.Report {
	t.Helper()
	got := clitest.RunProgram(t, dir, "bindery", append(args, "-o", "json")...)
	if got.Status != status {
		t.Fatalf("%q: status %d, want %d\n%s%s", args, got.Status, status, got.Stdout, got.Stderr)
	}
	r := &inspect.Report{}
	if err := json.Unmarshal([]byte(got.Stdout), r); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, got.Stdout)
	}
	return r
}

func TestInspectAndVerify(t *testing.T) {
	dir := clitest.WorkDir(t)
	built := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "cat", "-t", "reg.example.com/cat:v1", "--output",
		"oci:out:v1",
		"--server", "none", "--compression", "auto", "--label", "hostile=\x1b[31mred\nline", "--annotation", "a=b")
	if built.Status != 0 {
		t.Fatal(built.Stderr)
	}
	r := inspected(t, dir, 0, "inspect", "oci:out:v1")
	if len(r.Images) != 2 || r.Images[0].Compression != "gzip" || r.Images[1].Compression != "zstd" ||
		!strings.HasSuffix(built.Stdout, "@"+r.Digest.String()+"\n") ||
		len(r.Packages) == 0 || r.Proof != nil || len(r.Caches) != 1 || r.Caches[0].State != inspect.CacheNamed ||
		r.Annotations["a"] != "b" {
		t.Errorf("%+v\nbuilt %s", r, built.Stdout)
	}
	if r := inspected(t, dir, 0, "inspect", "--deep", "oci:out:v1"); len(r.Caches) != 1 ||
		r.Caches[0].State != inspect.CacheValid || r.Uncompressed == 0 {
		t.Errorf("--deep: %+v", r)
	}
	if r := inspected(t, dir, 0, "verify", "oci:out:v1"); !r.Proof.Same || r.Proof.Rebuilt != len(r.Layers) {
		t.Errorf("verify: %+v", r.Proof)
	}
	text := clitest.RunProgram(t, dir, "bindery", "inspect", "oci:out:v1")
	if text.Status != 0 || strings.ContainsRune(text.Stdout, 0x1b) || !strings.Contains(text.Stdout,
		r.Packages[0].Name) {
		t.Errorf("status %d, %q", text.Status, text.Stdout)
	}

	blob := filepath.Join(dir, "out", "blobs", "sha256", r.Layers[0].Digest.Encoded())
	content := []byte(clitest.ReadFile(t, blob))
	content[len(content)/2] ^= 1
	if err := os.WriteFile(blob, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := inspected(t, dir, 1, "verify", "oci:out:v1"); r.Proof.Same || len(r.Proof.Differences) != 1 ||
		r.Proof.Differences[0].Layer != r.Layers[0].Digest {
		t.Errorf("a damaged layer: %+v", r.Proof)
	}
	got := clitest.RunProgram(t, dir, "bindery", "verify", "oci:out:v1")
	if got.Status != 1 || !strings.HasPrefix(got.Stdout, "layer: ") || !strings.Contains(got.Stdout,
		"\ndifferent: 1 difference: ") || strings.Contains(got.Stderr, "error") {
		t.Errorf("status %d\n%s\n%s", got.Status, got.Stdout, got.Stderr)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "inspect", "--deep", "oci:out:v1"); got.Status != 0 ||
		!strings.Contains(got.Stderr, `"verify" lists`) {
		t.Errorf("inspect of a damaged image: status %d\n%s", got.Status, got.Stderr)
	}
}
