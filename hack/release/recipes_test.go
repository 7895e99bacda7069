package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unpack reads an archive, and returns the contents and the modes of its files.
func unpack(t *testing.T, name string) (map[string]string, map[string]int64) {
	t.Helper()
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	members, modes := map[string]string{}, map[string]int64{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return members, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		members[h.Name], modes[h.Name] = string(text), h.Mode
	}
}

// The recipes of a release have its version, digests and checksums, and nothing of the ones before, whether those are
// placeholders or of an earlier release. What is not made is zeros.
func TestRecipes(t *testing.T) {
	digest, debug := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	r := testRelease(t)
	r.root, r.image = "../..", "ghcr.io/operator-bindery/bindery"
	names := r.image + ":v1.2.3-rc.1@" + digest + "\n" + r.image + ":v1.2.3-rc.1-debug@" + debug + "\n"
	if err := r.write(imageNames, []byte(names)); err != nil {
		t.Fatal(err)
	}
	if err := r.recipes(); err != nil {
		t.Fatal(err)
	}
	members, modes := unpack(t, filepath.Join(r.stage, "bindery_1.2.3-rc.1_recipes.tar.gz"))
	sum, err := sha256File(filepath.Join(r.stage, "bindery_1.2.3-rc.1_linux_amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"action.yml": "    default: v1.2.3-rc.1\n",
		"deploy/github/checksums.txt": sum + "  bindery_1.2.3-rc.1_linux_amd64.tar.gz\n" + zeros +
			"  bindery_1.2.3-rc.1_linux_arm64",
		"deploy/ci/github.yaml":      "version: v1.2.3-rc.1\n          checksum: " + sum + "\n",
		"deploy/ci/pod.yaml":         "image: " + r.image + ":v1.2.3-rc.1@" + digest + "\n",
		"deploy/ci/jenkins-pod.yaml": "image: " + r.image + ":v1.2.3-rc.1-debug@" + debug + "\n",
		"deploy/ci/Containerfile":    "FROM " + r.image + ":v1.2.3-rc.1@" + digest + " AS bindery\n",
		"deploy/ci/gitlab-ci.yml":    "operator-bindery/bindery/review@v1.2.3-rc.1\n",
		"templates/build.yml":        "default: " + r.image + ":v1.2.3-rc.1-debug@" + debug + "\n",
		"templates/README.md":        "operator-bindery/bindery/build@v1.2.3-rc.1\n",
		"deploy/mirror/run.yaml":     "image: " + r.image + ":v1.2.3-rc.1@" + digest + "\n",
		"deploy/tekton/task/bindery-migrate/0.1/bindery-migrate.yaml": "default: " + r.image + ":v1.2.3-rc.1@" + digest,
	} {
		if !strings.Contains(members[name], want) {
			t.Errorf("%s lacks %q", name, want)
		}
	}
	if modes["deploy/github/install.sh"] != 0o755 || modes["action.yml"] != 0o644 {
		t.Errorf("the modes are %v", modes)
	}
	old := regexp.MustCompile(`operator-bindery/bindery(/[a-z]+@|:|@[0-9a-f]{40} # )v1\.0\.0`)
	for name, text := range members {
		if found := old.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
	// The next release is made from a source with these recipes.
	next := testRelease(t)
	next.root, next.image, next.version, next.platforms = t.TempDir(), r.image, "v1.3.0", nil
	for name, text := range members {
		path := filepath.Join(next.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := next.recipes(); err != nil {
		t.Fatal(err)
	}
	after, _ := unpack(t, filepath.Join(next.stage, "bindery_1.3.0_recipes.tar.gz"))
	if len(after) != len(members) {
		t.Errorf("%d recipes, then %d", len(members), len(after))
	}
	for name, text := range after {
		for _, was := range []string{"1.2.3-rc.1", digest, debug, sum} {
			if strings.Contains(text, was) {
				t.Errorf("%s still has %s", name, was)
			}
		}
	}
}
