package serve_test

import (
	"bufio"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// A served image is read again on SIGHUP; if it is gone, the server keeps the old catalog.
func TestServedImageIsLoadedAgain(t *testing.T) {
	dir := clitest.WorkDir(t)
	put := func(catalog string) {
		t.Helper()
		clitest.Done(t, dir, "bindery", "build", "catalog", catalog, "--server", "none", "--cache", "none", "--output",
			"oci:image:v1")
	}
	put("cat")
	first := clitest.Done(t, dir, "bindery", "list", "packages", "oci:image:v1")
	port, metrics := clitest.FreePort(t), clitest.FreePort(t)
	cmd := clitest.Command(dir, "bindery", "serve", "oci:image:v1", "-p", port, "--metrics-addr", "127.0.0.1:"+metrics,
		"--log-format", "json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	wait := func(part string) {
		t.Helper()
		var seen []string
		for lines.Scan() {
			if seen = append(seen, lines.Text()); strings.Contains(lines.Text(), part) {
				return
			}
		}
		t.Fatalf("the server has ended without saying %q:\n%s", part, strings.Join(seen, "\n"))
	}
	expect := func(want string) {
		t.Helper()
		resp, err := http.Get("http://127.0.0.1:" + metrics + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(text), "\n"+want+"\n") {
			t.Errorf("%q is not in the metrics (%v):\n%s", want, err, text)
		}
	}
	again := func(message string) {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		wait(message)
	}
	wait("serving registry")
	expect("bindery_catalog_packages 1")
	clitest.Done(t, dir, "bindery", "migrate", "small.db", "more")
	put("more")
	if second := clitest.Done(t, dir, "bindery", "list", "packages", "oci:image:v1"); first == second {
		t.Fatalf("both images have %s", first)
	}
	again("the catalog was loaded again")
	expect(`bindery_catalog_loads_total{result="success"} 2`)
	clitest.CopyFile(t, filepath.Join(dir, "image/index.json"), filepath.Join(dir, "index.json"))
	clitest.CopyFile(t, filepath.Join(dir, "README.md"), filepath.Join(dir, "image/index.json"))
	again("cannot be loaded again")
	expect(`bindery_catalog_last_load_failed 1`)
	clitest.CopyFile(t, filepath.Join(dir, "index.json"), filepath.Join(dir, "image/index.json"))
	again("the catalog was loaded again")
	expect(`bindery_catalog_last_load_failed 0`)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wait("shutting down server")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
