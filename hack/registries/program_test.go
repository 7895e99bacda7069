package registries

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bindery runs the program and returns what it prints.
func bindery(t testing.TB, args ...string) string {
	t.Helper()
	c := exec.Command(os.Getenv("BINDERY"), append(args, "--quiet")...)
	c.Env = append(os.Environ(), "BINDERY_USE_HTTP=true", "BINDERY_SIGN_PASSPHRASE=open sesame", "BINDERY_NO_PROGRESS=true")
	var log strings.Builder
	c.Stderr = &log
	out, err := c.Output()
	if err != nil {
		t.Fatalf("bindery %s: %v\n%s", strings.Join(args, " "), err, log.String())
	}
	return strings.TrimSpace(string(out))
}

// attached returns the digests of what is attached to an image, sorted. Names of tags may be others elsewhere.
func attached(t testing.TB, image string) (digests []string) {
	t.Helper()
	var answer any
	if err := json.Unmarshal([]byte(bindery(t, "tree", image, "-o", "json")), &answer); err != nil {
		t.Fatal(err)
	}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				visit(e)
			}
		case map[string]any:
			if d, ok := v["digest"].(string); ok {
				digests = append(digests, d)
			}
			for _, e := range v {
				visit(e)
			}
		}
	}
	visit(answer)
	slices.Sort(digests)
	return digests
}

// An image is built, pushed twice, signed and documented in each registry, and copied to each other one.
func TestProgram(t *testing.T) {
	hosts := map[string]string{}
	for name, start := range servers {
		hosts[name] = start(t).host
	}
	key := filepath.Join(t.TempDir(), "release")
	bindery(t, "keys", "generate", "--name", key)
	note := filepath.Join(t.TempDir(), "note.json")
	if err := os.WriteFile(note, []byte(`{"tested": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var first string
	for name, host := range hosts {
		image := host + "/acme/catalog:v1"
		digestFile := filepath.Join(t.TempDir(), "digest")
		for range 2 {
			bindery(t, "build", "catalog", "../../testdata/fbc/mini", "-t", image, "--push", "--server", "none",
				"--platform", "linux/amd64,linux/arm64", "--sign-key", key+".key", "--digest-file", digestFile)
			bindery(t, "attach", image, note, "--type", "application/vnd.example.report")
			digest, err := os.ReadFile(digestFile)
			if first == "" {
				first = string(digest)
			}
			if err != nil || string(digest) != first {
				t.Errorf("%s: the image is %s, elsewhere %s: %v", name, digest, first, err)
			}
		}
	}
	for from, source := range hosts {
		image := source + "/acme/catalog:v1"
		want := attached(t, image)
		if len(want) < 4 {
			t.Errorf("%s: attached are %v", from, want)
		}
		for to, host := range hosts {
			copied := host + "/from/" + strings.NewReplacer(" ", "-").Replace(from) + ":v1"
			bindery(t, "copy", image, copied)
			if got := attached(t, copied); !slices.Equal(got, want) {
				t.Errorf("%s to %s: attached are %v instead of %v", from, to, got, want)
			}
			bindery(t, "verify", copied, "--key", key+".pub", "--identity", image)
		}
	}
}
