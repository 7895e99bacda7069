package app_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// atOnce starts a command line as often as there are texts for N in it, all at once, and returns which ended well.
func atOnce(t *testing.T, dir, line string, texts []string) (good []string, all string) {
	t.Helper()
	cmds := make([]*exec.Cmd, len(texts))
	out := make([]bytes.Buffer, len(texts))
	for i, text := range texts {
		cmds[i] = clitest.Command(dir, "bindery", strings.Fields(strings.ReplaceAll(line, "N", text))...)
		cmds[i].Stdout, cmds[i].Stderr = &out[i], &out[i]
	}
	for _, cmd := range cmds {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range cmds {
		if cmd.Wait() == nil {
			good = append(good, texts[i])
		}
		all += out[i].String()
	}
	return good, all
}

// Of several runs at once that make the same output, which must not exist, one makes it, as a whole; the others fail.
func TestOutputsOfRunsAtOnce(t *testing.T) {
	t.Parallel()
	dir := clitest.BundleDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "passphrase"), "secret\n")
	if err := os.RemoveAll(filepath.Join(dir, "bundle", "metadata")); err != nil {
		t.Fatal(err)
	}
	texts := []string{"a1", "b2", "c3", "d4", "e5", "f6"}
	for _, text := range texts {
		clitest.WriteFile(t, filepath.Join(dir, "cat-"+text, "catalog.json"),
			strings.NewReplacer("NAME", text, "IMAGE", "example.com/x:v1").Replace(clitest.OneBundle))
	}
	clitest.WriteFile(t, filepath.Join(dir, "cat", "catalog.json"), strings.ReplaceAll(clitest.OneBundle, "NAME", "x"))
	for round := range 3 {
		for _, c := range []struct{ line, file, want string }{
			{"migrate cat-N out", "out/N/catalog.json", `"N"`},
			{"catalog filter cat-N -p N --to filtered", "filtered/N/catalog.json", `"N"`},
			{"generate dockerfile cat -i example.com/N:v1", "cat.Dockerfile", "example.com/N:v1"},
			{"bundle generate bundle/manifests -p N -c N", "bundle.Dockerfile", "package.v1=N\n"},
		} {
			file := func(name, text string) string { return filepath.Join(dir, strings.ReplaceAll(name, "N", text)) }
			good, all := atOnce(t, dir, c.line, texts)
			if len(good) != 1 || !strings.Contains(clitest.ReadFile(t, file(c.file, good[0])), strings.ReplaceAll(c.want, "N", good[0])) {
				t.Errorf("round %d: %s: %q succeeded\n%s", round, c.line, good, all)
			}
			first, _, _ := strings.Cut(c.file, "/")
			for _, made := range []string{first, "bundle/metadata"} {
				if err := os.RemoveAll(filepath.Join(dir, made)); err != nil {
					t.Fatal(err)
				}
			}
		}
		line := fmt.Sprintf("keys generate --name key%d --sign-passphrase-file passphrase --algorithm ed25519", round)
		good, all := atOnce(t, dir, line, texts)
		if len(good) != 1 || strings.Count(all, "a key is never overwritten") != len(texts)-1 {
			t.Errorf("%q succeeded\n%s", good, all)
		}
		// The two files are of one run.
		key, image := fmt.Sprint("key", round), fmt.Sprintf("oci:layout%d:v1", round)
		clitest.Done(t, dir, "bindery", "build", "catalog", "cat-a1", "-t", "example.com/x:v1", "--output", image, "--server", "none",
			"--no-cache")
		clitest.Done(t, dir, "bindery", "sign", image, "--sign-key", key+".key", "--sign-passphrase-file", "passphrase", "--sign-identity",
			"example.com/x:v1")
		clitest.Done(t, dir, "bindery", "verify", image, "--key", key+".pub", "--identity", "example.com/x:v1")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q %v", left, err)
	}
}

// A key needs a name, and a public key that is there is not replaced either.
func TestNamesOfKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "passphrase"), "secret\n")
	clitest.WriteFile(t, filepath.Join(dir, "there.pub"), "x")
	if err := os.Mkdir(filepath.Join(dir, "keys"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "invalid --name value", "..": "invalid --name value", ".": "invalid --name value",
		"keys/": "invalid --name value", "keys/..": "invalid --name value", "a\nb": "invalid --name value",
		"there": "there.pub exists", "keys/one": ""} {
		r := clitest.RunProgram(t, dir, "bindery", "keys", "generate", "--name", name, "--sign-passphrase-file", "passphrase")
		if (r.Status == 0) != (want == "") || !strings.Contains(r.Stderr, want) {
			t.Errorf("%q: %+v", name, r)
		}
	}
	for name := range filesBelow(t, dir) {
		if base := filepath.Base(name); base != "passphrase" && base != "there.pub" && !strings.HasPrefix(base, "one.") {
			t.Errorf("%s is written", name)
		}
	}
}
