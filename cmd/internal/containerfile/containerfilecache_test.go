//go:build linux && !nobuildah

package containerfile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
)

// If the image has bindery's server, the cache built for a RUN has the same bytes as the one that this server would
// fill, and the server accepts it.
func TestContainerfileWithTheNativeCache(t *testing.T) {
	dir := clitest.WorkDir(t)
	server := filepath.Join(dir, "opm-server")
	clitest.BuildServer(t, server)
	clitest.WriteFile(t, filepath.Join(dir, "Base"), "FROM scratch\nCOPY opm-server /usr/bin/opm\n")
	clitest.Done(t, dir, "bindery", "build", "containerfile", "-f", "Base", ".", "-t", "base:v1", "--no-cache", "--compression",
		"zstd")
	clitest.WriteFile(t, filepath.Join(dir, "Containerfile"),
		"FROM oci:base.oci:v1 AS builder\nENV PATH=/bin:/usr/bin\nADD cat /configs\nRUN opm serve /configs "+
			"--cache-dir=/tmp/cache --cache-only\n"+
			"FROM scratch\nCOPY --from=builder /configs /configs\nCOPY --from=builder /tmp/cache /tmp/cache\n")
	clitest.Done(t, dir, "bindery", "build", "containerfile", ".", "-t", "catalog:v1", "--no-cache")
	img, err := imagetest.Client(t).Image(t.Context(), "oci:"+filepath.Join(dir, "catalog.oci")+":v1", v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	tree, err := img.Extract(t.Context(), []string{"configs", "tmp/cache"}, images.ExtractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	out := filepath.Join(dir, "out")
	if err := os.CopyFS(out, tree); err != nil {
		t.Fatal(err)
	}
	fill := func(args ...string) {
		t.Helper()
		cmd := exec.Command(server,
			append([]string{"serve", filepath.Join(out, "configs"), "--cache-only"}, args...)...)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	own := filepath.Join(dir, "own")
	fill("--cache-dir", own)
	want, err := os.ReadDir(own)
	if err != nil || len(want) == 0 {
		t.Fatal(want, err)
	}
	cache := filepath.Join(out, "tmp", "cache")
	if got, err := os.ReadDir(cache); err != nil || len(got) != len(want) {
		t.Errorf("%v instead of %v, %v", got, want, err)
	}
	for _, f := range want {
		if clitest.ReadFile(t, filepath.Join(cache, f.Name())) != clitest.ReadFile(t, filepath.Join(own, f.Name())) {
			t.Errorf("%s is another one", f.Name())
		}
	}
	fill("--cache-dir", cache, "--cache-enforce-integrity")
	// The server detects a cache that does not match.
	clitest.WriteFile(t, filepath.Join(out, "configs", "more.json"), `{"schema": "more", "package": "more"}`)
	if text, err := exec.Command(server, "serve", filepath.Join(out, "configs"), "--cache-only", "--cache-dir", cache,
		"--cache-enforce-integrity").CombinedOutput(); err == nil {
		t.Errorf("a cache of another catalog is taken: %s", text)
	} else if !strings.Contains(string(text), "integrity") {
		t.Errorf("%s", text)
	}
}
