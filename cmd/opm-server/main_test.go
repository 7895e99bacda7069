package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

type buffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	wrote chan struct{} // receives a value after a write, unless one is pending; may be nil
}

func (s *buffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.wrote <- struct{}{}:
	default:
	}
	return s.b.Write(b)
}

func (s *buffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// execute runs the program with a command line.
func execute(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err buffer
	code = run(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

func TestVersionLine(t *testing.T) {
	code, stdout, _ := execute(t.Context(), "/bin/opm", "version")
	if code != 0 ||
		!regexp.MustCompile(
			`^Version: version\.Version\{OpmVersion:"v1\.73\.0", GitCommit:"", BuildDate:"", GoOs:"[a-z]+", GoArch:"[a-z0-9]+"\}\n$`).MatchString(stdout) {
		t.Errorf("exit code %d, %q", code, stdout)
	}
}

// The program is the same file in every release: its layer is in every image, whose digest must not depend on the release.
func TestServerDependsOnNoRelease(t *testing.T) {
	var files [2][]byte
	for i, release := range []string{"v1.2.3", "v4.5.6"} {
		file := filepath.Join(t.TempDir(), "opm-server")
		const variable = "github.com/operator-bindery/bindery/internal/version."
		out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false",
			"-tags=containers_image_openpgp,exclude_graphdriver_btrfs,grpcnotrace", "-ldflags", "-s -w -buildid= -X "+variable+
				"release="+release+" -X "+variable+"commit=c"+release+" -X "+variable+"date=d"+release, "-o", file,
			".").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if files[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(files[i], []byte(release)) {
			t.Error(release)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the server of one release is not that of another one")
	}
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"render"}, `unknown command "render"`},
		{[]string{"--nosuch"}, "unknown flag: --nosuch"},
		{[]string{"registry"}, "unknown command"},
		{[]string{"registry", "add"}, `unknown command "add"`},
		{[]string{"serve"}, "accepts 1 arg(s), received 0"},
		{[]string{"serve", "a", "b"}, "accepts 1 arg(s), received 2"},
		{[]string{"serve", "a", "--nosuch"}, "unknown flag: --nosuch"},
		{[]string{"serve", "a", "--port"}, "flag needs an argument"},
		{[]string{"serve", "a", "-p", "x"}, "invalid value"},
		{[]string{"serve", "a", "-p70000"}, "invalid --port value 70000, expected 0 to 65535"},
		{[]string{"serve", "a", "--reload-every", "-1s"}, "invalid --reload-every value -1s"},
		{[]string{"serve", "a", "--reload-every", "often"}, "invalid value"},
		{[]string{"serve", "a", "--tls-cert", "x"}, "--tls-cert and --tls-key go together"},
		{[]string{"serve", "a", "--max-connections=0"}, "invalid --max-connections value 0"},
		{[]string{"registry", "serve", "--max-streams", "-1"}, "invalid --max-streams value -1"},
		{[]string{"serve", "a", "--http-name", "x"}, "--http-name has no effect without --http-addr"},
		{[]string{"serve", "a", "--http-addr", "x", "--http-host", "a:80"}, `invalid --http-host value: "a:80" is no name of a host`},
		{[]string{"serve", "a", "--title", "x"}, "--title has no effect without --http-addr"},
		{[]string{"serve", "a", "--http-addr", "x", "--http-name", "A_"},
			`invalid --http-name value "A_": invalid catalog name`},
		{[]string{"serve", "a", "--http-addr", "x", "--http-gates", ""}, `invalid --http-gates value: invalid gate ""`},
		{[]string{"registry", "serve", "--log-format", "xml"}, `invalid --log-format value "xml"`},
		{[]string{"registry", "serve", "x"}, `unexpected argument "x"`},
		{[]string{"registry", "serve", "--timeout-seconds", "soon"}, `invalid timeout "soon"`},
	} {
		code, stdout, stderr := execute(t.Context(), append([]string{"opm"}, test.args...)...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, "Error: ") || !strings.Contains(stderr, test.want) ||
			!strings.Contains(stderr, "Usage:") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", test.args, code, stdout, stderr)
		}
	}
	code, _, stderr := execute(t.Context(), "opm", "serve", "/nonexistent")
	if code != 1 || !strings.Contains(stderr, "/nonexistent") || strings.Contains(stderr, "Usage:") {
		t.Errorf("a directory that is not there: exit code %d, %q", code, stderr)
	}
	if code, stdout, stderr := execute(t.Context(), "opm"); code != 0 || stdout+stderr != "" {
		t.Errorf("without arguments: exit code %d, %q, %q", code, stdout, stderr)
	}
}

const catalog = `{schema: olm.package, name: a, defaultChannel: c}
---
{schema: olm.channel, package: a, name: c, entries: [{name: a.v1.0.0}]}
---
{schema: olm.bundle, package: a, name: a.v1.0.0, image: example.test/a:v1.0.0, properties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]}
`

// freePort returns an unused port.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// waitFor waits until the output contains a text.
func waitFor(t *testing.T, b *buffer, part string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for !strings.Contains(b.String(), part) {
		select {
		case <-b.wrote:
		case <-timeout:
			t.Fatalf("%q is not in %s", part, b.String())
		}
	}
}

// TestServeAndProbe serves a catalog with flags before and after its directory, and probes it under the probe's name.
func TestServeAndProbe(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(catalog), 0o644); err != nil {
		t.Fatal(err)
	}
	cache, port, metrics := filepath.Join(t.TempDir(), "cache"), freePort(t), freePort(t)
	if code, _, stderr := execute(t.Context(), "opm", "serve", "--cache-only", dir, "--cache-dir="+cache, "-t",
		filepath.Join(t.TempDir(), "log")); code != 0 {
		t.Fatalf("fill the cache: %s", stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, err := buffer{}, buffer{wrote: make(chan struct{}, 1)}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx,
			[]string{"opm", "--use-http=false", "serve", "-p" + port, dir, "--cache-dir", cache,
				"--cache-enforce-integrity", "--log-format=json", "--metrics-addr", "127.0.0.1:" + metrics,
				"--termination-log", filepath.Join(cache, "..", "log")}, &out, &err)
	}()
	code, stdout, stderr := 2, "", ""
	for end := time.Now().Add(20 * time.Second); code != 0 && time.Now().Before(end); {
		code, stdout, stderr = execute(t.Context(), "/bin/grpc_health_probe", "-addr=127.0.0.1:"+port)
	}
	if code != 0 || stdout != "status: SERVING\n" {
		t.Errorf("probe: exit code %d, %q, %q; server: %q", code, stdout, stderr, err.String())
	}
	resp, getErr := http.Get("http://127.0.0.1:" + metrics + "/metrics")
	if getErr != nil {
		t.Fatal(getErr)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); !strings.Contains(string(text), "\nbindery_catalog_packages 1\n") {
		t.Errorf("metrics: %s", text)
	}
	// The cache no longer matches the catalog, which the flag forbids: the server keeps the old catalog.
	if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(strings.ReplaceAll(catalog, "1.0.0", "2.0.0")),
		0o644); err != nil {
		t.Fatal(err)
	}
	self, findErr := os.FindProcess(os.Getpid())
	if findErr != nil {
		t.Fatal(findErr)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, &err,
		`"level":"ERROR","msg":"the catalog cannot be loaded again: the one before is served until it changes"`)
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("server: exit code %d, %q", code, err.String())
	}
	if !strings.Contains(err.String(), "serving registry") || strings.Contains(err.String(), "building cache") {
		t.Errorf("log: %s", err.String())
	}
}

func TestDatabaseThatIsNotThere(t *testing.T) {
	code, _, stderr := execute(t.Context(), "opm", "registry", "serve", "-d", filepath.Join(t.TempDir(), "no.db"), "-p",
		"0", "-t", filepath.Join(t.TempDir(), "log"))
	if code != 1 || !strings.Contains(stderr, "no.db") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}
