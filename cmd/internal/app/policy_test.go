package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// policyDir is a directory with the policies and keys of the vectors, configurations for an image that is signed
// (signed.conf) and one that is not (unsigned.conf), and registries.d in "on", "off" and "broken". It returns the
// repository that the images are read from.
func policyDir(t *testing.T) (dir, physical string) {
	t.Helper()
	dir = supplytest.Policies(t)
	signed, unsigned := testregistry.New(t), testregistry.New(t)
	for vector, reg := range map[string]*testregistry.Registry{"sig-cimage-p256": signed, "unsigned": unsigned} {
		reg.AddLayout(t, supplytest.Vectors(t)[vector])
	}
	for name, reg := range map[string]*testregistry.Registry{"signed.conf": signed, "unsigned.conf": unsigned} {
		clitest.WriteFile(t, filepath.Join(dir, name), fmt.Sprintf("[[registry]]\nprefix = %q\nlocation = \"%s/layout\"\n"+
			"insecure = true\n", supplytest.Repository, reg.Host()))
	}
	clitest.WriteFile(t, filepath.Join(dir, "on", "a.yaml"), "default-docker: {use-sigstore-attachments: true}\n")
	clitest.WriteFile(t, filepath.Join(dir, "off", "a.yaml"), "default-docker: {use-sigstore-attachments: false}\n")
	clitest.WriteFile(t, filepath.Join(dir, "broken", "a.yaml"), "docker: [\n")
	clitest.WriteFile(t, filepath.Join(dir, "anything.json"), `{"default":[{"type":"insecureAcceptAnything"}]}`)
	clitest.WriteFile(t, filepath.Join(dir, "broken.json"), `{"default":`)
	clitest.WriteFile(t, filepath.Join(dir, "keyless.json"),
		`{"default":[{"type":"sigstoreSigned","keyPath":"`+filepath.ToSlash(dir)+`/gone.pub"}]}`)
	return dir, unsigned.Host() + "/layout"
}

// Refusals say what to do, in text and in JSON.
func TestPolicyRefusals(t *testing.T) {
	dir, physical := policyDir(t)
	const image = supplytest.Repository + ":v1"
	tag := "sha256-00a8352e405c0289f552a59e94682534c793ffa121cd93de0d4c13b5de3f99a8.sig"
	for _, c := range []struct {
		args          string
		message, hint string // message is empty for what is accepted
		object        string
	}{
		{"signed.conf --policy p256-default.json --registries-d on", "", "", ""},
		{"signed.conf --policy p256-default.json --registries-d on --require-signed", "", "", ""},
		{"signed.conf --policy anything.json --trusted-key p256.pub", "", "", ""},
		{"signed.conf --policy anything.json --trusted-key p256-other.pub --trusted-key p256.pub", "", "", ""},
		{"unsigned.conf --policy p256-default.json --registries-d on", "no signature exists",
			"there is no " + physical + ":" + tag, image},
		{"unsigned.conf --policy p256-default.json --registries-d off", "no signature exists",
			`off/a.yaml has "use-sigstore-attachments: false" for ` + physical, image},
		{"unsigned.conf --policy p256-default.json", "no signature exists",
			`docker: {"` + physical + `": {use-sigstore-attachments: true}}`, image},
		{"signed.conf --policy p256-default.json --registries-d broken", "registries.d: invalid: broken/a.yaml: ", "",
			"broken/a.yaml"},
		{"signed.conf --policy p256-other-default.json --registries-d on", "invalid signature", "", image},
		{"signed.conf --policy broken.json", "signature policy: broken.json: not JSON", "", ""},
		{"signed.conf --policy none.json", "none.json: no such file", "", "none.json"},
		{"signed.conf --policy keyless.json --registries-d on", `signature policy: keyless.json: default: keyPath "`,
			"",
			""},
		{"signed.conf --policy anything.json --require-signed", "anything.json accepts the image without one (default)",
			"name a key with --trusted-key FILE, or give the image a requirement sigstoreSigned or signedBy in " +
				"anything.json", image},
		{"signed.conf --policy anything.json --trusted-key p256-other.pub",
			"no trusted key has signed the image: sig: ",
			"", image},
		{"unsigned.conf --policy anything.json --trusted-key p256.pub", "no trusted key has signed the image",
			"there is no " + physical + ":" + tag, image},
		{"signed.conf --policy anything.json --trusted-key=", "--trusted-key names no key", "", ""},
		{"signed.conf --policy=", "--policy names no file", "", ""},
		{"signed.conf --policy anything.json --trusted-key none.pub", "--trusted-key",
			"paths start at the working directory", ""},
		{"signed.conf --policy anything.json --trusted-key p256.key", "--trusted-key p256.key: ", "", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := append([]string{"inspect", image, "--no-cache", "--error-format", "json", "--registries-conf"},
				strings.Fields(c.args)...)
			got := clitest.RunProgram(t, dir, "bindery", args...)
			if c.message == "" {
				if got.Status != 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			var e struct{ Message, Hint, Object string }
			if err := json.Unmarshal([]byte(got.Stderr), &e); err != nil || got.Status != 1 || got.Stdout != "" ||
				!strings.Contains(e.Message, c.message) || !strings.Contains(e.Hint, c.hint) ||
				c.hint == "" && e.Hint != "" {
				t.Errorf("%v: %+v", err, got)
			}
			if c.object == image && e.Object != image ||
				c.object != image && strings.Contains(e.Message, "failed to pull") {
				t.Errorf("the object is %q: %s", e.Object, e.Message)
			}
		})
	}
}

// What a hint says to write makes signatures to be looked for.
func TestHintForRegistriesDirIsRight(t *testing.T) {
	dir, _ := policyDir(t)
	args := []string{"inspect", supplytest.Repository + ":v1", "--no-cache", "--registries-conf", "signed.conf",
		"--policy", "p256-default.json"}
	got := clitest.RunProgram(t, dir, "bindery", args...)
	_, line, ok := strings.Cut(got.Stderr, "that has the line\n")
	if !ok {
		t.Fatalf("%+v", got)
	}
	if err := os.MkdirAll(filepath.Join(dir, "made"), 0o755); err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "made", "any.yaml"), line)
	if got := clitest.RunProgram(t, dir, "bindery", append(args, "--registries-d", "made")...); got.Status != 0 {
		t.Errorf("%q: %+v", line, got)
	}
}

// Commands that build demand signatures of what they read, and write nothing without.
func TestBuildsOfSignedImages(t *testing.T) {
	for name, args := range map[string]string{
		"a base": "build catalog cat -t x:v1 --output oci:out --server none --base " +
			"registry.example.com/acme/catalog:v1",
		"the last image": "build catalog cat -t x:v1 --output oci:out --server none --previous " +
			"registry.example.com/acme/catalog:v1",
		"a bundle":         "index add -b registry.example.com/acme/catalog:v1 -t x:v1 --output oci:out --server none",
		"a migrated index": "migrate registry.example.com/acme/catalog:v1 out",
		"a rendering":      "render registry.example.com/acme/catalog:v1",
		"a Containerfile":  "build containerfile . -f Containerfile -t x:v1 --output oci:out",
	} {
		for vector, refused := range map[string]bool{"unsigned": true, "sig-cimage-p256": false} {
			t.Run(name+" "+vector, func(t *testing.T) {
				dir := clitest.WorkDir(t)
				policies, _ := policyDir(t)
				reg := testregistry.New(t)
				reg.AddLayout(t, supplytest.Vectors(t)[vector])
				clitest.WriteFile(t, filepath.Join(dir, "c.conf"), fmt.Sprintf(
					"[[registry]]\nprefix = %q\nlocation = \"%s/layout\"\ninsecure = true\n", supplytest.Repository,
					reg.Host()))
				clitest.WriteFile(t, filepath.Join(dir, "Containerfile"),
					"FROM registry.example.com/acme/catalog:v1\nLABEL a=b\n")
				for _, how := range []string{"--trusted-key " + filepath.Join(policies, "p256.pub"),
					"--require-signed --policy " + filepath.Join(policies, "p256-default.json") + " --registries-d " +
						filepath.Join(policies, "on")} {
					got := clitest.RunProgram(t, dir, "bindery",
						append(strings.Fields(args+" "+how), "--registries-conf", "c.conf", "--no-cache")...)
					if said := strings.Contains(got.Stderr, "signature policy: "); said != refused {
						t.Errorf("%s: %+v", how, got)
					}
					if _, err := os.Lstat(filepath.Join(dir, "out")); refused && (err == nil || got.Status == 0) {
						t.Errorf("%s: there is an output, status %d", how, got.Status)
					}
					if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}
